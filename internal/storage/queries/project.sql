-- name: CreateProject :exec
INSERT INTO projects (id, number, organization_id, name, created_at) VALUES ($1, $2, $3, $4, $5);

-- name: FindProject :one
SELECT id, number, organization_id, name, created_at, events_days, replays_days
FROM projects
WHERE organization_id = $1 AND id = $2;

-- name: ListProjects :many
SELECT id, number, organization_id, name, created_at, events_days, replays_days
FROM projects
WHERE organization_id = $1 AND number > $2
ORDER BY number
LIMIT $3;

-- name: RenameProject :execrows
UPDATE projects SET name = $1 WHERE organization_id = $2 AND id = $3;

-- name: ListProjectOwners :many
SELECT number, organization_id FROM projects WHERE number > $1 ORDER BY number LIMIT $2;

-- name: SetProjectEventsDays :execrows
UPDATE projects SET events_days = $1 WHERE organization_id = $2 AND id = $3;

-- name: SetProjectReplaysDays :execrows
UPDATE projects SET replays_days = $1 WHERE organization_id = $2 AND id = $3;

-- name: ListProjectRetention :many
SELECT id, number, events_days, replays_days
FROM projects
WHERE number > $1
ORDER BY number
LIMIT $2;
