package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
)

// Mark says how far the log has been applied.
type Mark struct {
	// Store is the identity of the data folder.
	Store [16]byte
	// Position is that of the last item applied; 0 if there was none.
	Position uint64
	// Received is the window time of the last record applied, in milliseconds
	// since 1970. A record with the same time may still be to come.
	Received int64
	// MaxProject is the highest project number met.
	MaxProject uint32
	// Rows is how many event rows there are.
	Rows int64
	// Quarantined is how many items are set aside.
	Quarantined int64
}

// Mark returns the present mark.
func (s *Store) Mark(ctx context.Context) (Mark, error) {
	var mark Mark
	err := s.read(ctx, func(_ *duck.Conn, m Mark) error {
		mark = m
		return nil
	})
	return mark, err
}

// readMark returns the mark and the window in force at its position.
func readMark(ctx context.Context, conn *duck.Conn) (Mark, int64, error) {
	rows, err := conn.Query(ctx, `SELECT store, position, received, window_ms, max_project, row_count, quarantined FROM mark`)
	if err != nil {
		return Mark{}, 0, fmt.Errorf("read mark: %w", err)
	}
	var mark Mark
	var window int64
	count := 0
	for rows.Next() {
		count++
		mark = Mark{
			Store:       rows.UUID(0),
			Position:    uint64(rows.Int64(1)),
			Received:    rows.Int64(2),
			MaxProject:  rows.Uint32(4),
			Rows:        rows.Int64(5),
			Quarantined: rows.Int64(6),
		}
		window = rows.Int64(3)
	}
	if err := rows.Close(); err != nil {
		return Mark{}, 0, fmt.Errorf("read mark: %w", err)
	}
	if count != 1 {
		return Mark{}, 0, fmt.Errorf("read mark: %d rows, want 1", count)
	}
	return mark, window, nil
}

// writeMark replaces the mark. It deletes and inserts because DuckDB cannot
// checkpoint while a transaction that updated rows is still older than some
// reader, and with overlapping readers that is always; inserts and deletes do
// not have this effect. Nothing in this package uses UPDATE.
func writeMark(ctx context.Context, conn *duck.Conn, mark Mark, window int64) error {
	if _, err := conn.Exec(ctx, `DELETE FROM mark`); err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	_, err := conn.Exec(ctx, `INSERT INTO mark VALUES (?, ?::UUID, ?, ?, ?, ?, ?, ?)`,
		int64(schemaVersion), uuidText(mark.Store), int64(mark.Position), mark.Received, window,
		int64(mark.MaxProject), mark.Rows, mark.Quarantined)
	if err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	return nil
}

// read runs fn in a read transaction; the mark is of the same state as
// everything fn reads.
func (s *Store) read(ctx context.Context, fn func(*duck.Conn, Mark) error) error {
	conn, err := s.readers.acquire(ctx)
	if err != nil {
		return err
	}
	clean := false
	defer func() { s.readers.release(conn, clean) }()
	err = transaction(ctx, conn, func() error {
		mark, _, err := readMark(ctx, conn)
		if err != nil {
			return err
		}
		return fn(conn, mark)
	})
	clean = err == nil
	return classify(err)
}
