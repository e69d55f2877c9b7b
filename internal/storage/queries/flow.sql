-- name: CreateFlow :execrows
INSERT INTO flows (project_id, slug, latest_version, created_at) VALUES ($1, $2, 1, $3)
ON CONFLICT (project_id, slug) DO NOTHING;

-- name: LockFlow :execrows
UPDATE flows SET latest_version = latest_version WHERE project_id = $1 AND slug = $2;

-- name: FindFlow :one
SELECT * FROM flows WHERE project_id = $1 AND slug = $2;

-- name: AdvanceFlow :exec
UPDATE flows SET latest_version = $2 WHERE id = $1;

-- name: CreateFlowVersion :exec
INSERT INTO flow_versions (flow_id, version, definition, created_at) VALUES ($1, $2, $3, $4);

-- name: FindFlowVersion :one
SELECT * FROM flow_versions WHERE flow_id = $1 AND version = $2;

-- name: LoadFlowVersion :one
SELECT f.project_id, f.slug, v.definition, v.created_at FROM flow_versions v JOIN flows f ON f.id = v.flow_id
WHERE v.flow_id = $1 AND v.version = $2;

-- name: ListFlows :many
SELECT f.*, v.created_at AS version_created_at FROM flows f
JOIN flow_versions v ON v.flow_id = f.id AND v.version = f.latest_version
WHERE f.project_id = $1 AND f.slug > $2
ORDER BY f.slug LIMIT $3;

-- name: ListFlowVersions :many
SELECT version, created_at FROM flow_versions WHERE flow_id = sqlc.arg(flow_id) AND version < sqlc.arg(before)
ORDER BY version DESC LIMIT sqlc.arg(size);

-- name: PinFlow :execrows
UPDATE flows SET pinned_version = CAST(sqlc.arg(version) AS bigint)
WHERE project_id = $1 AND slug = $2 AND latest_version >= CAST(sqlc.arg(version) AS bigint);

-- name: UnpinFlow :execrows
UPDATE flows SET pinned_version = NULL WHERE project_id = $1 AND slug = $2;

-- name: ArchiveFlow :execrows
UPDATE flows SET archived_at = COALESCE(archived_at, CAST(sqlc.arg(at) AS bigint)) WHERE project_id = $1 AND slug = $2;

-- name: UnarchiveFlow :execrows
UPDATE flows SET archived_at = NULL WHERE project_id = $1 AND slug = $2;
