-- name: CreateCredential :execrows
INSERT INTO credentials (
  id, number, organization_id, project_id, user_id, kind, name, secret_hash,
  prefix, last_four, origins, rate, burst, created_at, expires_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (secret_hash) DO NOTHING;

-- name: FindCredential :one
SELECT
  c.id, c.number, c.organization_id, c.project_id, c.user_id, c.kind, c.name,
  c.secret_hash, c.prefix, c.last_four, c.origins, c.rate, c.burst,
  c.created_at, c.expires_at, c.revoked_at,
  p.number AS project_number, m.role, o.suspended_at
FROM credentials c
JOIN organizations o ON o.id = c.organization_id
LEFT JOIN projects p ON p.id = c.project_id
LEFT JOIN memberships m ON m.organization_id = c.organization_id AND m.user_id = c.user_id
WHERE c.secret_hash = $1;

-- name: ListCredentials :many
SELECT
  c.id, c.number, c.organization_id, c.project_id, c.user_id, c.kind, c.name,
  c.secret_hash, c.prefix, c.last_four, c.origins, c.rate, c.burst,
  c.created_at, c.expires_at, c.revoked_at,
  p.number AS project_number, m.role, o.suspended_at
FROM credentials c
JOIN organizations o ON o.id = c.organization_id
LEFT JOIN projects p ON p.id = c.project_id
LEFT JOIN memberships m ON m.organization_id = c.organization_id AND m.user_id = c.user_id
WHERE c.organization_id = $1 AND c.number > $2
ORDER BY c.number
LIMIT $3;

-- name: RevokeCredential :execrows
UPDATE credentials SET revoked_at = COALESCE(revoked_at, $1)
WHERE organization_id = $2 AND id = $3;
