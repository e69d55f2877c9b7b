-- name: CreateMeta :execrows
INSERT INTO meta (id, store_identity, format_version, created_at)
VALUES (1, $1, $2, $3)
ON CONFLICT (id) DO NOTHING;

-- name: GetMeta :one
SELECT store_identity, format_version FROM meta WHERE id = 1;

-- name: NextNumber :one
UPDATE counters SET value = value + 1 WHERE name = $1 RETURNING value;

-- name: GetCounter :one
SELECT value FROM counters WHERE name = $1;

-- name: CreateGeneration :exec
INSERT INTO generations (generation, made_at)
VALUES ($1, $2)
ON CONFLICT (generation) DO NOTHING;

-- name: CountGenerations :one
SELECT COUNT(*) FROM generations WHERE generation = $1;
