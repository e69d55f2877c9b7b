package replaystore

import "github.com/actionpulse/actionpulse/internal/storage/sqldb"

// The statements of a group. They are not generated, because those of many
// chunks travel together.
const (
	claimBlobText = `INSERT INTO replay_blobs (name, state, since) VALUES ($1, 'pending', $2) ON CONFLICT DO NOTHING`

	takeClaimText = `DELETE FROM replay_blobs WHERE name = $1 AND state = 'pending' RETURNING name`

	// A claim that was doomed meanwhile is doomed once more: its blob may have
	// been written after it was deleted, and before that was noted. A later time
	// tells the sweep so, whatever clocks say.
	doomBlobText = `INSERT INTO replay_blobs (name, state, since) VALUES ($1, 'doomed', $2)
ON CONFLICT (name) DO UPDATE SET since = replay_blobs.since + 1`

	createMarkText = `INSERT INTO replay_marks (project_id, session_hash, chunk, digest, attempt, received_at)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING chunk`

	findMarkText = `SELECT digest, attempt FROM replay_marks WHERE project_id = $1 AND session_hash = $2 AND chunk = $3`

	// addToSessionText makes a session of its first chunk, or adds one to it,
	// and locks it.
	addToSessionText = `INSERT INTO replay_sessions (
  project_id, session_hash, session_id, user_id, anon_id, started_at, ended_at, chunks, bytes, events, pages, errors, clicks
) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $10, $11, $12)
ON CONFLICT (project_id, session_hash) DO UPDATE SET
  user_id = COALESCE(excluded.user_id, replay_sessions.user_id),
  anon_id = COALESCE(excluded.anon_id, replay_sessions.anon_id),
  started_at = CASE WHEN excluded.started_at < replay_sessions.started_at THEN excluded.started_at ELSE replay_sessions.started_at END,
  ended_at = CASE WHEN excluded.ended_at > replay_sessions.ended_at THEN excluded.ended_at ELSE replay_sessions.ended_at END,
  chunks = replay_sessions.chunks + 1,
  bytes = replay_sessions.bytes + excluded.bytes,
  events = replay_sessions.events + excluded.events,
  pages = replay_sessions.pages + excluded.pages,
  errors = replay_sessions.errors + excluded.errors,
  clicks = replay_sessions.clicks + excluded.clicks
RETURNING number`

	createChunkText = `INSERT INTO replay_chunks (
  session_number, chunk, project_id, blob, bytes, stored_bytes, user_id, anon_id, received_at, started_at, ended_at, events, pages, errors, clicks
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

	addUsageText = `INSERT INTO replay_usage (project_id, month, chunks, bytes) VALUES ($1, $2, $3, $4)
ON CONFLICT (project_id, month) DO UPDATE SET chunks = replay_usage.chunks + excluded.chunks, bytes = replay_usage.bytes + excluded.bytes`
)

// each is a statement once for each of many arguments.
func each(text string, args [][]any) []sqldb.Statement {
	out := make([]sqldb.Statement, len(args))
	for i, one := range args {
		out[i] = sqldb.Statement{Text: text, Args: one}
	}
	return out
}
