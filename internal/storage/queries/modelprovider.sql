-- name: PutModelProvider :exec
INSERT INTO model_providers (
  project_id, name, base_url, secret, secret_key_id, secret_prefix, secret_last_four, timeout, requests_per_minute,
  max_concurrent, created_at, updated_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (project_id, name) DO UPDATE SET
  base_url = excluded.base_url, secret = excluded.secret, secret_key_id = excluded.secret_key_id,
  secret_prefix = excluded.secret_prefix, secret_last_four = excluded.secret_last_four, timeout = excluded.timeout,
  requests_per_minute = excluded.requests_per_minute, max_concurrent = excluded.max_concurrent, updated_at = excluded.updated_at;

-- name: LockModelProvider :execrows
UPDATE model_providers SET updated_at = updated_at WHERE project_id = $1 AND name = $2;

-- name: FindModelProvider :one
SELECT * FROM model_providers WHERE project_id = $1 AND name = $2;

-- name: ListModelProviders :many
SELECT * FROM model_providers WHERE project_id = $1 AND name > $2 ORDER BY name LIMIT $3;

-- name: CountModelProviders :one
SELECT COUNT(*) FROM model_providers WHERE project_id = $1;

-- name: DeleteModelProvider :execrows
DELETE FROM model_providers WHERE project_id = $1 AND name = $2;

-- name: ListModelSecretKeyIDs :many
SELECT DISTINCT secret_key_id FROM model_providers WHERE secret_key_id IS NOT NULL;
