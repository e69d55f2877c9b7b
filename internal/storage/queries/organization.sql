-- name: LockOrganization :one
-- While it is locked, nobody else changes it or who belongs to it. Both engines
-- lock a row that is written; only one has a word for it.
UPDATE organizations SET name = name WHERE id = $1
RETURNING id, name, created_at, suspended_at, plan;

-- name: SetOrganization :exec
UPDATE organizations SET name = $1, suspended_at = $2, plan = $3 WHERE id = $4;

-- name: ListOrganizations :many
SELECT o.id, o.name, o.created_at, o.suspended_at, o.plan, m.role
FROM memberships m
JOIN organizations o ON o.id = m.organization_id
WHERE m.user_id = $1 AND o.id > $2
ORDER BY o.id
LIMIT $3;

-- name: ListAllOrganizations :many
SELECT id, name, created_at, suspended_at, plan FROM organizations WHERE id > $1 ORDER BY id LIMIT $2;

-- name: FindOrganization :one
SELECT o.id, o.name, o.created_at, o.suspended_at, o.plan, m.role
FROM memberships m
JOIN organizations o ON o.id = m.organization_id
WHERE m.user_id = $1 AND o.id = $2;

-- name: FindMembership :one
SELECT role FROM memberships WHERE organization_id = $1 AND user_id = $2;

-- name: FirstMembership :one
SELECT organization_id, role FROM memberships
WHERE user_id = $1
ORDER BY created_at, organization_id
LIMIT 1;

-- name: ListMembers :many
SELECT u.id, u.email, m.role, m.created_at
FROM memberships m
JOIN users u ON u.id = m.user_id
WHERE m.organization_id = $1 AND m.user_id > $2
ORDER BY m.user_id
LIMIT $3;

-- name: FindMember :one
SELECT u.id, u.email, m.role, m.created_at
FROM memberships m
JOIN users u ON u.id = m.user_id
WHERE m.organization_id = $1 AND m.user_id = $2;

-- name: FindRoleByEmail :one
SELECT m.role
FROM memberships m
JOIN users u ON u.id = m.user_id
WHERE m.organization_id = $1 AND u.email = $2;

-- name: CountOwners :one
SELECT COUNT(*) FROM memberships WHERE organization_id = $1 AND role = 'owner';

-- name: SetRole :exec
UPDATE memberships SET role = $1 WHERE organization_id = $2 AND user_id = $3;

-- name: DeleteMembership :exec
DELETE FROM memberships WHERE organization_id = $1 AND user_id = $2;
