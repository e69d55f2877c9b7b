-- name: CountAccounts :one
SELECT (SELECT COUNT(*) FROM organizations) + (SELECT COUNT(*) FROM users) AS total;

-- name: CreateOrganization :exec
INSERT INTO organizations (id, name, created_at) VALUES ($1, $2, $3);

-- name: CreateUser :exec
INSERT INTO users (id, email, password_hash, created_at) VALUES ($1, $2, $3, $4);

-- name: CreateMembership :exec
INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES ($1, $2, $3, $4);

-- name: CreateProject :exec
INSERT INTO projects (id, number, organization_id, name, created_at) VALUES ($1, $2, $3, $4, $5);

-- name: FindProject :one
SELECT id, number, organization_id, name
FROM projects
WHERE organization_id = $1 AND id = $2;
