-- name: FindReplayMark :one
SELECT digest, attempt FROM replay_marks WHERE project_id = $1 AND session_hash = $2 AND chunk = $3;

-- name: ListReplaySessions :many
SELECT s.* FROM replay_sessions s
WHERE s.project_id = sqlc.arg(project_id) AND s.number < sqlc.arg(before)
  AND s.started_at >= sqlc.arg(from_at) AND s.started_at < sqlc.arg(to_at)
  AND s.ended_at - s.started_at >= CAST(sqlc.arg(min_duration) AS bigint)
  AND s.errors >= sqlc.arg(least_errors) AND s.errors <= sqlc.arg(most_errors)
  AND (CAST(sqlc.arg(any_person) AS bigint) = 1 OR EXISTS (
    SELECT 1 FROM replay_chunks c WHERE c.session_number = s.number
      AND (c.user_id = sqlc.arg(person) OR c.anon_id = sqlc.arg(person))
  ))
ORDER BY s.number DESC LIMIT sqlc.arg(size);

-- name: FindReplaySession :one
SELECT * FROM replay_sessions WHERE project_id = $1 AND session_hash = $2;

-- name: ListReplayChunks :many
SELECT * FROM replay_chunks WHERE session_number = sqlc.arg(session_number) AND chunk > sqlc.arg(after)
ORDER BY chunk LIMIT sqlc.arg(size);

-- name: FindReplayChunk :one
SELECT c.* FROM replay_chunks c JOIN replay_sessions s ON s.number = c.session_number
WHERE s.project_id = $1 AND s.session_hash = $2 AND c.chunk = $3;

-- name: ListReplayUserChunks :many
SELECT c.*, s.session_id FROM replay_chunks c JOIN replay_sessions s ON s.number = c.session_number
WHERE c.project_id = sqlc.arg(project_id) AND c.user_id = sqlc.arg(user_id)
  AND c.received_at >= sqlc.arg(received_from) AND c.received_at < sqlc.arg(received_before)
  AND (c.session_number > sqlc.arg(after_session) OR c.session_number = sqlc.arg(after_session) AND c.chunk > sqlc.arg(after))
ORDER BY c.session_number, c.chunk LIMIT sqlc.arg(size);

-- name: ListReplayAnonChunks :many
SELECT c.*, s.session_id FROM replay_chunks c JOIN replay_sessions s ON s.number = c.session_number
WHERE c.project_id = sqlc.arg(project_id) AND c.anon_id = sqlc.arg(anon_id)
  AND (CAST(sqlc.arg(any_user) AS bigint) = 1 OR c.user_id IS NULL)
  AND c.received_at >= sqlc.arg(received_from) AND c.received_at < sqlc.arg(received_before)
  AND (c.session_number > sqlc.arg(after_session) OR c.session_number = sqlc.arg(after_session) AND c.chunk > sqlc.arg(after))
ORDER BY c.session_number, c.chunk LIMIT sqlc.arg(size);

-- name: ListReplayAnonsOfUser :many
SELECT DISTINCT anon_id FROM replay_chunks
WHERE project_id = $1 AND user_id = $2 AND received_at < sqlc.arg(before) AND anon_id IS NOT NULL;

-- name: ListReplayUsersOfAnon :many
SELECT DISTINCT user_id FROM replay_chunks
WHERE project_id = $1 AND anon_id = $2 AND received_at < sqlc.arg(before) AND user_id IS NOT NULL;

-- name: NewestReplayChunk :one
SELECT CAST(COALESCE(MAX(received_at), 0) AS bigint) AS newest FROM replay_chunks WHERE project_id = $1;

-- name: ListReplayBlobs :many
SELECT c.*, s.session_id FROM replay_chunks c JOIN replay_sessions s ON s.number = c.session_number
WHERE c.blob > sqlc.arg(after) ORDER BY c.blob LIMIT sqlc.arg(size);

-- name: ListReplayPersonsOfSession :many
SELECT DISTINCT c.user_id, c.anon_id FROM replay_chunks c JOIN replay_sessions s ON s.number = c.session_number
WHERE s.project_id = $1 AND s.session_hash = $2;

-- name: ListReplayChunksOfSession :many
SELECT c.session_number, c.chunk, c.blob FROM replay_chunks c JOIN replay_sessions s ON s.number = c.session_number
WHERE s.project_id = sqlc.arg(project_id) AND s.session_hash = sqlc.arg(session_hash)
ORDER BY c.chunk LIMIT sqlc.arg(size);

-- name: ListReplayChunksOlder :many
SELECT c.session_number, c.chunk, c.blob FROM replay_chunks c
WHERE c.project_id = sqlc.arg(project_id) AND c.received_at < sqlc.arg(before)
  AND c.received_at < (SELECT COALESCE(MAX(m.received_at), 0) FROM received_marks m) - CAST(sqlc.arg(keep) AS bigint)
ORDER BY c.received_at LIMIT sqlc.arg(size);

-- name: LockReplaySession :exec
UPDATE replay_sessions SET chunks = chunks WHERE number = $1;

-- name: DeleteReplayChunk :execrows
DELETE FROM replay_chunks WHERE blob = $1;

-- name: DeleteEmptyReplaySession :execrows
DELETE FROM replay_sessions
WHERE number = sqlc.arg(number) AND NOT EXISTS (SELECT 1 FROM replay_chunks c WHERE c.session_number = sqlc.arg(number));

-- name: SumUpReplaySession :exec
UPDATE replay_sessions SET
  user_id = (SELECT c.user_id FROM replay_chunks c WHERE c.session_number = sqlc.arg(number) AND c.user_id IS NOT NULL
    ORDER BY c.received_at DESC, c.chunk DESC LIMIT 1),
  anon_id = (SELECT c.anon_id FROM replay_chunks c WHERE c.session_number = sqlc.arg(number) AND c.anon_id IS NOT NULL
    ORDER BY c.received_at DESC, c.chunk DESC LIMIT 1),
  started_at = (SELECT MIN(c.started_at) FROM replay_chunks c WHERE c.session_number = sqlc.arg(number)),
  ended_at = (SELECT MAX(c.ended_at) FROM replay_chunks c WHERE c.session_number = sqlc.arg(number)),
  chunks = (SELECT COUNT(*) FROM replay_chunks c WHERE c.session_number = sqlc.arg(number)),
  bytes = (SELECT CAST(SUM(c.bytes) AS bigint) FROM replay_chunks c WHERE c.session_number = sqlc.arg(number)),
  events = (SELECT CAST(SUM(c.events) AS bigint) FROM replay_chunks c WHERE c.session_number = sqlc.arg(number)),
  pages = (SELECT CAST(SUM(c.pages) AS bigint) FROM replay_chunks c WHERE c.session_number = sqlc.arg(number)),
  errors = (SELECT CAST(SUM(c.errors) AS bigint) FROM replay_chunks c WHERE c.session_number = sqlc.arg(number)),
  clicks = (SELECT CAST(SUM(c.clicks) AS bigint) FROM replay_chunks c WHERE c.session_number = sqlc.arg(number))
WHERE replay_sessions.number = sqlc.arg(number);

-- name: DoomReplayBlob :exec
INSERT INTO replay_blobs (name, state, since) VALUES ($1, 'doomed', $2);

-- name: DoomReplayBlobs :execrows
UPDATE replay_blobs SET state = 'doomed', since = sqlc.arg(at) WHERE state = 'pending' AND name IN (
  SELECT b.name FROM replay_blobs b WHERE b.state = 'pending' AND b.since < sqlc.arg(before) ORDER BY b.since LIMIT sqlc.arg(size)
);

-- name: ListDoomedReplayBlobs :many
SELECT name, since FROM replay_blobs WHERE state = 'doomed' AND name > sqlc.arg(after) ORDER BY name LIMIT sqlc.arg(size);

-- name: ForgetReplayBlob :exec
DELETE FROM replay_blobs WHERE name = $1 AND state = 'doomed' AND since = $2;

-- name: TakeReplayPlace :exec
INSERT INTO replay_place (one, id, moved_from) VALUES (1, $1, $1) ON CONFLICT DO NOTHING;

-- name: FindReplayPlace :one
SELECT id, moved_from FROM replay_place;

-- name: MoveReplayPlace :exec
UPDATE replay_place SET moved_from = id, id = sqlc.arg(to_id) WHERE id = sqlc.arg(from_id);
