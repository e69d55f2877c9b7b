package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/record"
)

// Snapshot reads the store as one commit left it, however long that takes and
// whatever is written meanwhile. One goroutine at a time may use it.
type Snapshot struct {
	store *Store
	conn  *duck.Conn
	mark  Mark
	// window is the one in force at the mark, in milliseconds.
	window int64
}

// Snapshot opens a snapshot of the present state. The caller must close it.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	conn, err := s.readers.extra()
	if err != nil {
		return nil, err
	}
	snap := &Snapshot{store: s, conn: conn}
	if _, err := conn.Exec(ctx, "BEGIN TRANSACTION"); err != nil {
		s.readers.discard(conn)
		return nil, fmt.Errorf("open snapshot: %w", classify(err))
	}
	// The first read fixes the state that the transaction sees.
	snap.mark, snap.window, err = readMark(ctx, conn)
	if err != nil {
		s.readers.discard(conn)
		return nil, fmt.Errorf("open snapshot: %w", classify(err))
	}
	return snap, nil
}

// Close releases the snapshot.
func (n *Snapshot) Close() error {
	if n.conn == nil {
		return nil
	}
	err := rollback(context.Background(), n.conn)
	n.store.readers.discard(n.conn)
	n.conn = nil
	return err
}

// Mark returns the snapshot's mark.
func (n *Snapshot) Mark() Mark { return n.mark }

// RowCount returns the number of event rows, counted and not taken from the
// mark.
func (n *Snapshot) RowCount(ctx context.Context) (int64, error) {
	count, err := scalar(ctx, n.conn, `SELECT count(*) FROM events`)
	if err != nil {
		return 0, fmt.Errorf("count rows: %w", classify(err))
	}
	return count, nil
}

// Repeat is two rows of one claimed identity that the window forbids.
type Repeat struct {
	Identity record.Identity
	// First and Second are the rows' positions.
	First, Second uint64
	// FirstReceived and SecondReceived are in milliseconds since 1970.
	FirstReceived, SecondReceived int64
}

// Repeated returns up to limit pairs of successive rows of one claimed
// identity that were received no further apart than the window in force at the
// later one. Of rows that were erased the claims count. A correct store has
// none.
func (n *Snapshot) Repeated(ctx context.Context, limit int) ([]Repeat, error) {
	rows, err := n.conn.Query(ctx, repeatedQuery, int64(limit))
	if err != nil {
		return nil, fmt.Errorf("look for repeated events: %w", classify(err))
	}
	var list []Repeat
	for rows.Next() {
		list = append(list, Repeat{
			Identity:       record.Identity{Project: rows.Uint32(0), KeyKind: record.KeyKind(rows.Uint8(1)), EventID: rows.UUID(2)},
			First:          uint64(rows.Int64(3)),
			Second:         uint64(rows.Int64(4)),
			FirstReceived:  rows.Int64(5),
			SecondReceived: rows.Int64(6),
		})
	}
	if err := rows.Close(); err != nil {
		return nil, fmt.Errorf("look for repeated events: %w", classify(err))
	}
	return list, nil
}

// repeatedQuery narrows to identities with several rows before it sorts.
const repeatedQuery = `
WITH stored AS (
	SELECT project, key_kind, event_id, seq, received FROM events WHERE claimed
	UNION ALL
	SELECT project, key_kind, event_id, seq, received FROM erased_claims
), several AS (
	SELECT project, key_kind, event_id FROM stored
	GROUP BY ALL HAVING count(*) > 1
), pairs AS (
	SELECT project, key_kind, event_id, seq AS second, received AS second_received,
		lag(seq) OVER w AS first, lag(received) OVER w AS first_received
	FROM stored SEMI JOIN several USING (project, key_kind, event_id)
	WINDOW w AS (PARTITION BY project, key_kind, event_id ORDER BY seq)
)
SELECT project, key_kind, event_id, first, second, first_received, second_received
FROM pairs ASOF JOIN windows ON pairs.second >= windows.from_position
WHERE first IS NOT NULL AND second_received - first_received <= window_ms
ORDER BY second LIMIT ?`
