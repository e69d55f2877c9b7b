-- name: CountAlerts :one
SELECT COUNT(*) FROM alerts WHERE project_id = $1 AND deleted_at IS NULL;

-- name: CreateAlert :exec
INSERT INTO alerts (
  id, project_id, name, source, metric, period, timezone, condition, for_periods, resolve_after, revision, next_start, next_end,
  attempts, state, good_run, bad_run, told, created_at, updated_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, $12, 0, 'ok', 0, 0, 0, sqlc.arg(at), sqlc.arg(at));

-- name: FindAlert :one
SELECT * FROM alerts WHERE project_id = $1 AND id = $2 AND deleted_at IS NULL;

-- name: ListAlerts :many
SELECT * FROM alerts WHERE project_id = $1 AND id > $2 AND deleted_at IS NULL
ORDER BY id LIMIT $3;

-- name: LockProjectOfAlerts :execrows
UPDATE projects SET name = name WHERE id = $1;

-- name: LockAlert :execrows
UPDATE alerts SET revision = revision WHERE project_id = $1 AND id = $2 AND deleted_at IS NULL;

-- name: UpdateAlert :execrows
UPDATE alerts SET name = $3, source = $4, metric = $5, period = $6, timezone = $7, condition = $8, for_periods = $9,
  resolve_after = $10, revision = $11, next_start = $12, next_end = $13, attempts = $14, retry_at = $15, problem = $16,
  problem_since = $17, state = $18, good_run = $19, bad_run = $20, firing_since = $21, fired_entry = $22, told = $23,
  muted_at = $24, muted_until = $25, last_start = $26, last_end = $27, last_verdict = $28, last_value = $29,
  last_baseline = $30, last_at = $31, last_problem = $32, updated_at = $33, deleted_at = $34
WHERE project_id = $1 AND id = $2 AND deleted_at IS NULL;

-- Those of one project after the first come after the first of all others: no
-- project keeps the others waiting.
-- name: ListDueAlerts :many
SELECT due.id, due.project_id, due.number, due.project_created_at FROM (
  SELECT a.id, a.project_id, a.next_end, p.number, p.created_at AS project_created_at,
    ROW_NUMBER() OVER (PARTITION BY a.project_id ORDER BY a.next_end, a.id) AS turn
  FROM alerts a
  JOIN projects p ON p.id = a.project_id
  JOIN organizations o ON o.id = p.organization_id
  WHERE a.deleted_at IS NULL AND o.suspended_at IS NULL
    AND (a.retry_at IS NULL OR a.retry_at <= sqlc.arg(now))
    AND a.next_end <= CASE WHEN a.source = 'trend' THEN CAST(sqlc.arg(stored) AS bigint) ELSE CAST(sqlc.arg(passed) AS bigint) END
) due
ORDER BY due.turn, due.next_end, due.id LIMIT sqlc.arg(size) OFFSET sqlc.arg(skipped);

-- name: CreateAlertEvaluation :execrows
INSERT INTO alert_evaluations (
  alert_id, period_start, period_end, revision, verdict, problem, value, baseline, evaluated_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING;

-- name: ListAlertValues :many
SELECT period_start, value FROM alert_evaluations
WHERE alert_id = $1 AND revision = $2 AND period_start >= $3 AND period_start < $4 AND verdict <> 'unknown'
ORDER BY period_start;

-- name: CreateAlertEntry :exec
INSERT INTO alert_history (
  id, alert_id, kind, at, user_id, reason, period_start, period_end, value, baseline, problem, until, periods, muted, releases
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);

-- name: ListAlertHistory :many
SELECT * FROM alert_history WHERE alert_id = $1 AND number < $2
ORDER BY number DESC LIMIT $3;

-- name: DeleteOldAlertEvaluations :execrows
DELETE FROM alert_evaluations WHERE (alert_id, period_start) IN (
  SELECT e.alert_id, e.period_start FROM alert_evaluations e
  WHERE e.evaluated_at < sqlc.arg(before) ORDER BY e.evaluated_at LIMIT sqlc.arg(size)
);

-- name: DeleteOldAlertEntries :execrows
DELETE FROM alert_history WHERE number IN (
  SELECT h.number FROM alert_history h WHERE h.at < sqlc.arg(before) ORDER BY h.at LIMIT sqlc.arg(size)
);

-- name: DeleteOrphanAlertEvaluations :execrows
DELETE FROM alert_evaluations WHERE (alert_id, period_start) IN (
  SELECT e.alert_id, e.period_start FROM alert_evaluations e JOIN alerts a ON a.id = e.alert_id
  WHERE a.deleted_at IS NOT NULL LIMIT sqlc.arg(size)
);

-- name: DeleteOrphanAlertEntries :execrows
DELETE FROM alert_history WHERE number IN (
  SELECT h.number FROM alert_history h JOIN alerts a ON a.id = h.alert_id
  WHERE a.deleted_at IS NOT NULL LIMIT sqlc.arg(size)
);

-- name: DeleteEmptiedAlerts :execrows
DELETE FROM alerts WHERE id IN (
  SELECT a.id FROM alerts a
  WHERE a.deleted_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM alert_evaluations e WHERE e.alert_id = a.id)
    AND NOT EXISTS (SELECT 1 FROM alert_history h WHERE h.alert_id = a.id)
  LIMIT sqlc.arg(size)
);
