-- name: CreateInvitation :exec
INSERT INTO invitations (id, organization_id, email, role, secret_hash, created_by, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: ListInvitations :many
SELECT id, organization_id, email, role, created_by, created_at, expires_at, accepted_at, revoked_at
FROM invitations
WHERE organization_id = sqlc.arg(organization_id)
  AND (CAST(sqlc.arg(before) AS text) = '' OR id < CAST(sqlc.arg(before) AS text))
ORDER BY id DESC
LIMIT sqlc.arg(size);

-- name: FindInvitation :one
SELECT id, organization_id, email, role, created_by, created_at, expires_at, accepted_at, revoked_at
FROM invitations
WHERE secret_hash = $1;

-- name: LockInvitation :one
-- While it is locked, nobody else accepts or revokes it.
UPDATE invitations SET email = email WHERE organization_id = $1 AND id = $2
RETURNING id, organization_id, email, role, created_by, created_at, expires_at, accepted_at, revoked_at;

-- name: AcceptInvitation :exec
UPDATE invitations SET accepted_at = $1 WHERE id = $2;

-- name: RevokeInvitation :exec
UPDATE invitations SET revoked_at = $1 WHERE id = $2;

-- name: RevokeInvitationsOf :exec
UPDATE invitations SET revoked_at = $1
WHERE organization_id = $2 AND created_by = $3 AND accepted_at IS NULL AND revoked_at IS NULL;
