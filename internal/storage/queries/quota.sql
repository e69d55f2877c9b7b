-- What was received of session replays. The month is year * 100 + month.

-- name: FindReplayUsage :one
-- The plan of an organization, and what its projects have received in a month.
SELECT o.plan, CAST(COALESCE(SUM(u.bytes), 0) AS bigint) AS bytes
FROM organizations o
LEFT JOIN projects p ON p.organization_id = o.id
LEFT JOIN replay_usage u ON u.project_id = p.id AND u.month = sqlc.arg(month)
WHERE o.id = sqlc.arg(organization_id)
GROUP BY o.plan;

-- name: ListReplayUsage :many
SELECT p.number, u.bytes
FROM projects p
JOIN replay_usage u ON u.project_id = p.id AND u.month = sqlc.arg(month)
WHERE p.organization_id = sqlc.arg(organization_id);

-- name: SumReplayUsage :many
SELECT p.organization_id, CAST(SUM(u.bytes) AS bigint) AS bytes
FROM replay_usage u
JOIN projects p ON p.id = u.project_id
WHERE u.month = sqlc.arg(month)
GROUP BY p.organization_id;
