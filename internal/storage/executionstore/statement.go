package executionstore

// The statements of executions: one text for both engines, written here and not
// generated because most of them run in batches.
const (
	executionColumns = `x.number, x.id, x.project_id, x.flow_id, f.slug, x.version, c.external_id, x.work_key, x.mode, x.status,
  x.input, x.context, x.output, x.error_code, x.error_message, x.charged, x.unbilled,
  x.input_tokens, x.output_tokens, x.cached_tokens, x.reasoning_tokens, x.owner, x.epoch, x.cancel_asked_at,
  x.created_at, x.started_at, x.finished_at, CASE WHEN h.id IS NULL THEN 0 ELSE 1 END`

	executionTables = ` FROM executions x JOIN flows f ON f.id = x.flow_id LEFT JOIN customers c ON c.id = x.customer_id
LEFT JOIN holds h ON h.execution_id = x.id`

	findExecutionText = `SELECT ` + executionColumns + executionTables + ` WHERE x.project_id = $1 AND x.id = $2`

	numberedExecutionText = `SELECT ` + executionColumns + executionTables + ` WHERE x.number = $1`

	createExecutionText = `INSERT INTO executions (
  id, project_id, flow_id, version, customer_id, work_key, mode, status, input, context, error_code, error_message,
  charged, unbilled, input_tokens, output_tokens, cached_tokens, reasoning_tokens, owner, epoch, created_at, started_at, finished_at,
  lease_until
) VALUES ($1, $2, $3, $4, (SELECT id FROM customers WHERE project_id = $2 AND external_id = $5), $6, $7, $8, $9, $10, $11, $12,
  0, 0, 0, 0, 0, 0, $13, $14, $15, $16, $17, `

	seenText = `SELECT status, owner, epoch, cancel_asked_at FROM executions WHERE number = $1`

	endExecutionText = `UPDATE executions SET status = $2, output = $3, error_code = $4, error_message = $5, charged = $6, unbilled = $7,
  input_tokens = $8, output_tokens = $9, cached_tokens = $10, reasoning_tokens = $11, finished_at = $12, owner = NULL, lease_until = NULL
WHERE number = $1`

	putStepText = `INSERT INTO execution_steps (
  execution, step, iteration, type, state, attempt, output, price, error_code, error_message, started_at, finished_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (execution, step, iteration) DO UPDATE SET state = excluded.state, attempt = excluded.attempt, output = excluded.output,
  price = excluded.price, error_code = excluded.error_code, error_message = excluded.error_message, finished_at = excluded.finished_at`

	putCallText = `INSERT INTO execution_calls (
  id, execution, project_id, step, iteration, attempt, kind, status, provider, model, http_status,
  input_tokens, output_tokens, cached_tokens, reasoning_tokens, price, derived_key, provider_request_id, request, response, error_message,
  started_at, finished_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, provider = excluded.provider, model = excluded.model,
  http_status = excluded.http_status, input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
  cached_tokens = excluded.cached_tokens, reasoning_tokens = excluded.reasoning_tokens, price = excluded.price,
  provider_request_id = excluded.provider_request_id, request = excluded.request, response = excluded.response,
  error_message = excluded.error_message, finished_at = excluded.finished_at`

	journalStepsText = `SELECT step, iteration, type, state, attempt, output, price, error_code, error_message, started_at, finished_at
FROM execution_steps WHERE execution = $1 ORDER BY started_at, step, iteration`

	callColumns = `k.id, x.id, k.step, k.iteration, k.attempt, k.kind, k.status, k.provider, k.model, k.http_status,
  k.input_tokens, k.output_tokens, k.cached_tokens, k.reasoning_tokens, k.price, k.derived_key, k.provider_request_id,
  k.request, k.response, k.error_message, k.started_at, k.finished_at`

	journalCallsText = `SELECT ` + callColumns + ` FROM execution_calls k JOIN executions x ON x.number = k.execution
WHERE k.execution = $1 ORDER BY k.started_at, k.id`

	anyQueuedText = `SELECT 1 FROM executions WHERE status = 'queued' LIMIT 1`

	queuedText  = `SELECT number FROM executions WHERE status = 'queued'`
	queuedOrder = ` ORDER BY number LIMIT $1`

	claimText = `UPDATE executions SET status = 'running', owner = $2, epoch = epoch + 1, started_at = COALESCE(started_at, $3), lease_until = `

	voidText = `UPDATE executions SET status = 'queued', owner = NULL WHERE status = 'running' AND lease_until IS NULL AND owner <> $1`

	releaseText = `UPDATE executions SET status = 'queued', owner = NULL, lease_until = NULL
WHERE number = $1 AND status = 'running' AND owner = $2 AND epoch = $3`

	heldText = `SELECT number, epoch, cancel_asked_at FROM executions WHERE status = 'running' AND owner = $1 ORDER BY number`

	askCancelText = `UPDATE executions SET cancel_asked_at = COALESCE(cancel_asked_at, $2) WHERE number = $1 AND status IN ('queued', 'running')`

	// Outputs are objects: null is never one.
	forgetStepsText = `UPDATE execution_steps SET output = 'null' WHERE (execution, step, iteration) IN (
  SELECT s.execution, s.step, s.iteration FROM execution_steps s JOIN executions x ON x.number = s.execution
  WHERE s.output IS NOT NULL AND s.output <> 'null' AND s.finished_at < $1 AND x.finished_at < $1 LIMIT $2)`

	forgetCallsText = `UPDATE execution_calls SET request = NULL, response = NULL WHERE id IN (
  SELECT k.id FROM execution_calls k JOIN executions x ON x.number = k.execution
  WHERE (k.request IS NOT NULL OR k.response IS NOT NULL) AND k.finished_at < $1 AND x.finished_at < $1 LIMIT $2)`

	// The database's clock, by which leases end where several processes share
	// one: PostgreSQL.
	databaseNow = `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)`

	// Nobody takes over what is its own: it renews the lease.
	expiredText = `SELECT number FROM executions WHERE status = 'running' AND owner <> $1 AND lease_until < ` + databaseNow + `
ORDER BY number LIMIT $2`
)
