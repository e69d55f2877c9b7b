-- name: CreateMarker :exec
INSERT INTO release_markers (
  id, project_id, version, environment, ts, commit_id, url, title, metadata, source, created_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: FindMarker :one
SELECT id, project_id, version, environment, ts, commit_id, url, title, metadata, source, created_at, deleted_at
FROM release_markers
WHERE project_id = $1 AND id = $2;

-- name: ListMarkers :many
SELECT id, project_id, version, environment, ts, commit_id, url, title, metadata, source, created_at, deleted_at
FROM release_markers
WHERE project_id = sqlc.arg(project_id) AND deleted_at IS NULL
  AND ts >= sqlc.arg(from_ts) AND ts < sqlc.arg(to_ts)
  AND (ts < sqlc.arg(before_ts) OR (ts = sqlc.arg(before_ts) AND id < sqlc.arg(before_id)))
  AND (sqlc.arg(any_environment) = 1 OR environment = sqlc.arg(environment))
ORDER BY ts DESC, id DESC
LIMIT sqlc.arg(row_limit);

-- name: DeleteMarker :execrows
UPDATE release_markers SET deleted_at = $1
WHERE project_id = $2 AND id = $3 AND deleted_at IS NULL;
