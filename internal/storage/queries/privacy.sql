-- name: CreatePrivacyJob :execrows
INSERT INTO privacy_jobs (id, project_id, kind, person_kind, person, status, phase, progress, server, epoch, failures, created_at)
VALUES ($1, $2, $3, $4, $5, 'queued', $6, 0, $7, 0, 0, $8)
ON CONFLICT DO NOTHING;

-- name: FindPrivacyJob :one
SELECT * FROM privacy_jobs WHERE project_id = $1 AND id = $2;

-- name: ListPrivacyJobs :many
SELECT * FROM privacy_jobs
WHERE project_id = sqlc.arg(project_id) AND (CAST(sqlc.arg(before) AS text) = '' OR id < CAST(sqlc.arg(before) AS text))
ORDER BY id DESC LIMIT sqlc.arg(size);

-- The job that is not finished of a person, of which there is at most one.
-- name: FindActivePrivacyJob :one
SELECT id FROM privacy_jobs
WHERE project_id = $1 AND person_kind = $2 AND person = $3 AND status IN ('queued', 'running');

-- name: FindActivePrivacyJobOfProject :one
SELECT id FROM privacy_jobs WHERE project_id = $1 AND status IN ('queued', 'running') ORDER BY number LIMIT 1;

-- Keeps jobs from being made until the transaction ends, and is kept waiting by
-- changes that have found none.
-- name: LockProjectForPrivacyJob :execrows
UPDATE projects SET name = name WHERE id = $1;

-- name: CancelPrivacyJob :execrows
UPDATE privacy_jobs
SET status = 'cancelled', owner = NULL, lease_until = NULL, next_attempt_at = NULL, error = NULL, finished_at = CAST(sqlc.arg(at) AS bigint)
WHERE project_id = $1 AND id = $2 AND status IN ('queued', 'running') AND phase IN ('exports', 'archive');

-- Ends a deletion of another server of which nothing was heard since a time by
-- the database's clock: it renews no lease, of whatever job, and has not come to
-- what it was to do again.
-- name: AbandonPrivacyJob :execrows
UPDATE privacy_jobs
SET status = 'failed', owner = NULL, lease_until = NULL, next_attempt_at = NULL, error = CAST(sqlc.arg(error) AS text), finished_at = CAST(sqlc.arg(at) AS bigint)
WHERE privacy_jobs.project_id = sqlc.arg(project_id) AND privacy_jobs.id = sqlc.arg(id) AND privacy_jobs.kind = 'delete'
  AND privacy_jobs.server <> sqlc.arg(server)
  AND (privacy_jobs.status = 'running' AND privacy_jobs.lease_until < CAST(sqlc.arg(since) AS bigint)
    OR privacy_jobs.status = 'queued' AND privacy_jobs.next_attempt_at < CAST(sqlc.arg(since) AS bigint))
  AND NOT EXISTS (
    SELECT 1 FROM privacy_jobs other
    WHERE other.server = privacy_jobs.server AND other.status = 'running' AND other.lease_until >= CAST(sqlc.arg(since) AS bigint)
  );

-- name: AdvancePrivacyJob :execrows
UPDATE privacy_jobs
SET phase = sqlc.arg(phase), progress = CASE WHEN progress < sqlc.arg(progress) THEN sqlc.arg(progress) ELSE progress END,
  erase_position = sqlc.arg(erase_position), recorded_at = sqlc.arg(recorded_at), failures = sqlc.arg(failures), error = sqlc.arg(error)
WHERE id = sqlc.arg(id) AND status = 'running' AND owner = sqlc.arg(owner) AND epoch = sqlc.arg(epoch);

-- name: FinishPrivacyJob :execrows
UPDATE privacy_jobs
SET status = sqlc.arg(status), phase = sqlc.arg(phase), progress = sqlc.arg(progress), owner = NULL, lease_until = NULL, failures = sqlc.arg(failures), error = sqlc.arg(error),
  erased_from_log_at = sqlc.arg(erased_from_log_at), archive_bytes = sqlc.arg(archive_bytes), archive_until = sqlc.arg(archive_until),
  finished_at = sqlc.arg(finished_at)
WHERE id = sqlc.arg(id) AND status = 'running' AND owner = sqlc.arg(owner) AND epoch = sqlc.arg(epoch);

-- name: ReleasePrivacyJob :execrows
UPDATE privacy_jobs
SET status = 'queued', owner = NULL, lease_until = NULL, next_attempt_at = sqlc.arg(next_attempt_at), error = sqlc.arg(error), failures = sqlc.arg(failures)
WHERE id = sqlc.arg(id) AND status = 'running' AND owner = sqlc.arg(owner) AND epoch = sqlc.arg(epoch);

-- name: VoidPrivacyJobs :execrows
UPDATE privacy_jobs SET status = 'queued', owner = NULL WHERE status = 'running' AND lease_until IS NULL AND owner <> sqlc.arg(owner);

-- name: ListExpiredPrivacyArchives :many
SELECT id FROM privacy_jobs WHERE archive_until <= sqlc.arg(at) ORDER BY archive_until LIMIT sqlc.arg(size);

-- name: ListPrivacyArchivesOfPerson :many
SELECT id FROM privacy_jobs
WHERE project_id = $1 AND person_kind = $2 AND person = $3 AND archive_until IS NOT NULL;

-- Leases that ended long ago are of processes that are gone: what they have
-- begun is begun anew.
-- name: CountPrivacyExportsOfPerson :one
SELECT COUNT(*) FROM privacy_jobs
WHERE project_id = $1 AND person_kind = $2 AND person = $3 AND kind = 'export' AND status = 'running'
  AND (lease_until IS NULL OR lease_until > CAST(sqlc.arg(ended) AS bigint));

-- name: ForgetPrivacyArchive :execrows
UPDATE privacy_jobs SET archive_until = NULL WHERE id = $1;

-- name: FindPrivacyArchive :one
SELECT COUNT(*) FROM privacy_jobs
WHERE id = $1 AND (archive_until IS NOT NULL OR kind = 'export' AND status = 'running');

-- name: GetPrivacyJob :one
SELECT sqlc.embed(j), p.organization_id, p.number AS project_number
FROM privacy_jobs j JOIN projects p ON p.id = j.project_id WHERE j.id = $1;

-- name: ForgetCustomerMetadata :execrows
UPDATE customers SET metadata = NULL WHERE id = $1 AND metadata IS NOT NULL;

-- name: ForgetCustomerHolds :execrows
UPDATE holds SET reason = NULL, metadata = NULL WHERE id IN (
  SELECT h.id FROM holds h
  WHERE h.customer_id = $1 AND h.created_at <= sqlc.arg(before) AND (h.reason IS NOT NULL OR h.metadata IS NOT NULL) LIMIT sqlc.arg(size)
);

-- name: ForgetCustomerExecutions :execrows
UPDATE executions SET input = '{}', context = NULL, output = CASE WHEN output IS NULL THEN NULL ELSE 'null' END,
  error_message = CASE WHEN error_message IS NULL THEN NULL ELSE '[erased]' END
WHERE number IN (
  SELECT x.number FROM executions x
  WHERE x.customer_id = $1 AND x.created_at <= sqlc.arg(before) AND x.finished_at IS NOT NULL
    AND (x.input <> '{}' OR x.context IS NOT NULL OR x.output <> 'null' OR x.error_message <> '[erased]')
  ORDER BY x.number LIMIT sqlc.arg(size)
);

-- name: ForgetCustomerSteps :execrows
UPDATE execution_steps SET output = CASE WHEN output IS NULL THEN NULL ELSE 'null' END,
  error_message = CASE WHEN error_message IS NULL THEN NULL ELSE '[erased]' END
WHERE (execution, step, iteration) IN (
  SELECT s.execution, s.step, s.iteration FROM executions x JOIN execution_steps s ON s.execution = x.number
  WHERE x.customer_id = $1 AND x.created_at <= sqlc.arg(before) AND x.finished_at IS NOT NULL
    AND (s.output <> 'null' OR s.error_message <> '[erased]')
  LIMIT sqlc.arg(size)
);

-- name: ForgetCustomerCalls :execrows
UPDATE execution_calls SET request = NULL, response = NULL, error_message = NULL WHERE id IN (
  SELECT k.id FROM executions x JOIN execution_calls k ON k.execution = x.number
  WHERE x.customer_id = $1 AND x.created_at <= sqlc.arg(before) AND x.finished_at IS NOT NULL
    AND (k.request IS NOT NULL OR k.response IS NOT NULL OR k.error_message IS NOT NULL)
  LIMIT sqlc.arg(size)
);

-- name: CountRunningExecutions :one
SELECT COUNT(*) FROM executions WHERE customer_id = $1 AND created_at <= sqlc.arg(before) AND finished_at IS NULL;

-- name: FindCustomerNumber :one
SELECT id FROM customers WHERE project_id = $1 AND external_id = $2;

-- name: NewestCustomerHold :one
SELECT CAST(COALESCE(MAX(created_at), 0) AS bigint) AS newest FROM holds WHERE customer_id = $1;

-- name: NewestCustomerExecution :one
SELECT CAST(COALESCE(MAX(created_at), 0) AS bigint) AS newest FROM executions WHERE customer_id = $1;

-- name: NewestWebhookMessage :one
SELECT CAST(COALESCE(MAX(created_at), 0) AS bigint) AS newest FROM webhook_messages WHERE project_id = $1;

-- Those that nobody waits for: bodies of the others are still to be sent.
-- name: ListSettledWebhookMessages :many
SELECT m.id, m.body FROM webhook_messages m
WHERE m.project_id = $1 AND m.id > sqlc.arg(after) AND m.created_at <= sqlc.arg(before)
  AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.message_id = m.id AND d.state = 'pending')
ORDER BY m.id LIMIT sqlc.arg(size);

-- name: SetWebhookMessageBody :execrows
UPDATE webhook_messages SET body = $2 WHERE id = $1;
