-- name: CountAccounts :one
SELECT (SELECT COUNT(*) FROM organizations) + (SELECT COUNT(*) FROM users) AS total;

-- name: CreateOrganization :exec
INSERT INTO organizations (id, name, created_at) VALUES ($1, $2, $3);

-- name: CreateUser :execrows
INSERT INTO users (id, email, password_hash, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (email) DO NOTHING;

-- name: CreateMembership :exec
INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES ($1, $2, $3, $4);

-- name: FindUser :one
SELECT id, email, password_hash, created_at FROM users WHERE email = $1;

-- name: FindUserByID :one
SELECT id, email, password_hash, created_at FROM users WHERE id = $1;

-- name: LockUser :execrows
-- It also says whether the user has that password hash still.
UPDATE users SET email = email WHERE id = $1 AND password_hash = $2;

-- name: SetPasswordHash :execrows
UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3;
