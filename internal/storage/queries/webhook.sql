-- name: CreateWebhookEndpoint :exec
INSERT INTO webhook_endpoints (
  id, project_id, url, description, event_types, low_balance, secret, state, created_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, 'enabled', $8);

-- name: CountWebhookEndpoints :one
SELECT COUNT(*) FROM webhook_endpoints WHERE project_id = $1 AND state <> 'deleted';

-- name: FindWebhookEndpoint :one
SELECT * FROM webhook_endpoints WHERE project_id = $1 AND id = $2 AND state <> 'deleted';

-- name: ListWebhookEndpoints :many
SELECT * FROM webhook_endpoints WHERE project_id = $1 AND id > $2 AND state <> 'deleted'
ORDER BY id LIMIT $3;

-- name: UpdateWebhookEndpoint :execrows
UPDATE webhook_endpoints SET url = $3, description = $4, event_types = $5, low_balance = $6, secret = $7, old_secret = $8,
  old_secret_until = $9, state = $10, disabled_reason = $11, failing_since = $12, ended_at = $13
WHERE project_id = $1 AND id = $2 AND state <> 'deleted';

-- name: CreateWebhookMessage :exec
INSERT INTO webhook_messages (id, project_id, type, body, created_at) VALUES ($1, $2, $3, $4, $5);

-- name: CreateWebhookDelivery :exec
INSERT INTO webhook_deliveries (id, endpoint_id, message_id, state, attempts, next_attempt_at, epoch, created_at)
VALUES ($1, $2, $3, 'pending', 0, sqlc.arg(at), 0, sqlc.arg(at));

-- name: FindWebhookDelivery :one
SELECT d.*, m.type, m.body FROM webhook_deliveries d JOIN webhook_messages m ON m.id = d.message_id
WHERE d.endpoint_id = $1 AND d.id = $2;

-- name: ListWebhookDeliveries :many
SELECT d.*, m.type, m.body FROM webhook_deliveries d JOIN webhook_messages m ON m.id = d.message_id
WHERE d.endpoint_id = sqlc.arg(endpoint_id)
  AND d.number < sqlc.arg(before)
  AND (CAST(sqlc.arg(state) AS text) = '' OR d.state = CAST(sqlc.arg(state) AS text))
ORDER BY d.number DESC LIMIT sqlc.arg(size);

-- name: ResendWebhookDelivery :execrows
UPDATE webhook_deliveries SET state = 'pending', attempts = 0, next_attempt_at = CAST(sqlc.arg(at) AS bigint), epoch = epoch + 1, finished_at = NULL
WHERE endpoint_id = $1 AND id = $2 AND state <> 'pending';

-- name: ListDueWebhookEndpoints :many
SELECT e.id FROM webhook_endpoints e
WHERE e.state = 'enabled' AND EXISTS (
  SELECT 1 FROM webhook_deliveries d
  WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.next_attempt_at <= sqlc.arg(now)
);

-- name: FinishWebhookDelivery :execrows
UPDATE webhook_deliveries SET state = $3, next_attempt_at = $4, last_status = $5, last_error = $6, finished_at = $7
WHERE id = $1 AND epoch = $2 AND state = 'pending';

-- name: NoteWebhookSuccess :exec
UPDATE webhook_endpoints SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL;

-- name: NoteWebhookFailure :exec
UPDATE webhook_endpoints SET failing_since = sqlc.arg(at) WHERE id = $1 AND failing_since IS NULL AND state = 'enabled';

-- name: DisableWebhookEndpoint :execrows
UPDATE webhook_endpoints SET state = 'disabled', disabled_reason = $2, ended_at = $3 WHERE id = $1 AND state = 'enabled';

-- name: DisableFailingWebhookEndpoint :execrows
UPDATE webhook_endpoints SET state = 'disabled', disabled_reason = 'failing', ended_at = sqlc.arg(at)
WHERE id = $1 AND state = 'enabled' AND failing_since <= sqlc.arg(since);

-- name: DeleteOldWebhookDeliveries :execrows
DELETE FROM webhook_deliveries WHERE number IN (
  SELECT d.number FROM webhook_deliveries d WHERE d.finished_at < sqlc.arg(before) ORDER BY d.finished_at LIMIT sqlc.arg(size)
);

-- name: DeleteOrphanWebhookDeliveries :execrows
DELETE FROM webhook_deliveries WHERE number IN (
  SELECT d.number FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
  WHERE e.state = 'deleted' LIMIT sqlc.arg(size)
);

-- name: DeleteOldWebhookMessages :execrows
DELETE FROM webhook_messages WHERE id IN (
  SELECT m.id FROM webhook_messages m
  WHERE m.created_at < sqlc.arg(before) AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.message_id = m.id)
  ORDER BY m.created_at LIMIT sqlc.arg(size)
);

-- name: LockWebhookEndpoint :execrows
UPDATE webhook_endpoints SET failing_since = failing_since WHERE project_id = $1 AND id = $2 AND state <> 'deleted';

-- name: ListWebhookSubscribers :many
SELECT id, event_types, low_balance FROM webhook_endpoints WHERE project_id = $1 AND state = 'enabled' ORDER BY id;
