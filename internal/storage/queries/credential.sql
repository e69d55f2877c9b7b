-- name: CreateCredential :execrows
INSERT INTO credentials (
  id, number, organization_id, project_id, user_id, kind, name, secret_hash,
  prefix, last_four, origins, rate, burst, created_at, expires_at, session_id
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
ON CONFLICT (secret_hash) DO NOTHING;

-- name: FindCredential :one
SELECT
  c.id, c.number, c.organization_id, c.project_id, c.user_id, c.kind, c.name,
  c.secret_hash, c.prefix, c.last_four, c.origins, c.rate, c.burst,
  c.created_at, c.expires_at, c.revoked_at, c.session_id,
  p.number AS project_number, m.role, o.suspended_at, o.plan, s.revoked_at AS session_revoked_at
FROM credentials c
JOIN organizations o ON o.id = c.organization_id
LEFT JOIN projects p ON p.id = c.project_id
LEFT JOIN sessions s ON s.id = c.session_id
LEFT JOIN memberships m ON m.organization_id = c.organization_id AND m.user_id = c.user_id
WHERE c.secret_hash = $1;

-- name: ListCredentials :many
SELECT
  c.id, c.number, c.organization_id, c.project_id, c.user_id, c.kind, c.name,
  c.secret_hash, c.prefix, c.last_four, c.origins, c.rate, c.burst,
  c.created_at, c.expires_at, c.revoked_at, c.session_id,
  p.number AS project_number, m.role, o.suspended_at, o.plan, s.revoked_at AS session_revoked_at
FROM credentials c
JOIN organizations o ON o.id = c.organization_id
LEFT JOIN projects p ON p.id = c.project_id
LEFT JOIN sessions s ON s.id = c.session_id
LEFT JOIN memberships m ON m.organization_id = c.organization_id AND m.user_id = c.user_id
WHERE c.organization_id = $1 AND c.number > $2
ORDER BY c.number
LIMIT $3;

-- name: ListProjectCredentials :many
-- The kinds are one text, each between two commas: a query has no lists.
SELECT
  c.id, c.number, c.organization_id, c.project_id, c.user_id, c.kind, c.name,
  c.secret_hash, c.prefix, c.last_four, c.origins, c.rate, c.burst,
  c.created_at, c.expires_at, c.revoked_at, c.session_id,
  p.number AS project_number, m.role, o.suspended_at, o.plan, s.revoked_at AS session_revoked_at
FROM credentials c
JOIN organizations o ON o.id = c.organization_id
LEFT JOIN projects p ON p.id = c.project_id
LEFT JOIN sessions s ON s.id = c.session_id
LEFT JOIN memberships m ON m.organization_id = c.organization_id AND m.user_id = c.user_id
WHERE c.organization_id = sqlc.arg(organization_id) AND c.project_id = sqlc.arg(project_id)
  AND CAST(sqlc.arg(kinds) AS text) LIKE '%,' || c.kind || ',%' AND c.number > sqlc.arg(after)
ORDER BY c.number
LIMIT sqlc.arg(size);

-- name: LockCredential :one
-- While it is locked, nobody else changes it.
UPDATE credentials SET name = name WHERE organization_id = $1 AND id = $2
RETURNING secret_hash;

-- name: SetCredentialExpiry :exec
UPDATE credentials SET expires_at = $1 WHERE id = $2;

-- name: RevokeCredential :execrows
UPDATE credentials SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL;

-- name: RevokeLooseTokensOfUser :exec
-- Access tokens without a session, all but one.
UPDATE credentials SET revoked_at = $1
WHERE user_id = $2 AND id <> $3 AND session_id IS NULL AND kind = 'access' AND revoked_at IS NULL;

-- name: RevokeTokensOfMember :exec
UPDATE credentials SET revoked_at = $1
WHERE user_id = $2 AND organization_id = $3 AND kind = 'access' AND revoked_at IS NULL;

-- name: DeleteDeadCredentials :execrows
DELETE FROM credentials
WHERE id IN (
  SELECT c.id FROM credentials c WHERE c.kind = 'access' AND c.expires_at < $1 ORDER BY c.expires_at LIMIT $2
);
