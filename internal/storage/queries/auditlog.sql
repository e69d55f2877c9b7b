-- name: CreateAuditEntry :exec
INSERT INTO audit_entries (
  id, organization_id, project_id, at, user_id, request_id, address, action, object_kind, object_id, details
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: ListAuditEntries :many
SELECT id, organization_id, project_id, at, user_id, request_id, address, action, object_kind, object_id, details
FROM audit_entries
WHERE organization_id = sqlc.arg(organization_id)
  AND (CAST(sqlc.arg(before) AS text) = '' OR id < CAST(sqlc.arg(before) AS text))
ORDER BY id DESC
LIMIT sqlc.arg(size);
