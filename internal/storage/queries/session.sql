-- name: CreateSession :exec
INSERT INTO sessions (id, user_id, organization_id, created_at) VALUES ($1, $2, $3, $4);

-- name: CreateRefreshToken :exec
INSERT INTO refresh_tokens (secret_hash, session_id, created_at, expires_at) VALUES ($1, $2, $3, $4);

-- name: LockSessionOfToken :one
-- While it is locked, nobody else refreshes or ends it.
UPDATE sessions SET user_id = user_id
WHERE id = (SELECT session_id FROM refresh_tokens WHERE secret_hash = $1)
RETURNING id, user_id, organization_id, created_at, revoked_at;

-- name: GetRefreshToken :one
SELECT created_at, expires_at, spent_at FROM refresh_tokens WHERE secret_hash = $1;

-- name: SpendRefreshToken :execrows
UPDATE refresh_tokens SET spent_at = $1 WHERE secret_hash = $2 AND spent_at IS NULL;

-- name: SetSessionOrganization :exec
UPDATE sessions SET organization_id = $1 WHERE id = $2;

-- name: RevokeSession :execrows
UPDATE sessions SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL;

-- name: RevokeSessionsOfUser :exec
-- All but one, which may be none: the id is empty then.
UPDATE sessions SET revoked_at = $1 WHERE user_id = $2 AND id <> $3 AND revoked_at IS NULL;

-- name: RevokeSessionsOfMember :exec
UPDATE sessions SET revoked_at = $1 WHERE user_id = $2 AND organization_id = $3 AND revoked_at IS NULL;

-- name: DeleteDeadRefreshTokens :execrows
DELETE FROM refresh_tokens
WHERE secret_hash IN (
  SELECT t.secret_hash FROM refresh_tokens t WHERE t.expires_at < $1 ORDER BY t.expires_at LIMIT $2
);

-- name: DeleteDeadSessions :execrows
DELETE FROM sessions
WHERE id IN (
  SELECT s.id FROM sessions s
  WHERE s.created_at < $1
    AND NOT EXISTS (SELECT 1 FROM refresh_tokens t WHERE t.session_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM credentials c WHERE c.session_id = s.id)
  LIMIT $2
);
