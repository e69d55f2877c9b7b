-- name: NoteReceived :exec
INSERT INTO received_marks (server, received_at) VALUES ($1, $2)
ON CONFLICT (server) DO UPDATE SET received_at = excluded.received_at;
