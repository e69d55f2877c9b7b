package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/record"
)

// setAside keeps one item of a record, encoded as a record of its own.
func (b *batch) setAside(r *record.Record, i int, reason string) error {
	a, err := b.lazily(&b.quarantine, quarantineAppender)
	if err != nil {
		return err
	}
	single := *r
	single.Items = r.Items[i : i+1]
	a.Int64(0, int64(r.Position)+int64(i))
	a.Blob(1, record.Append(nil, &single))
	a.Text(2, reason)
	b.quarantined++
	return a.EndRow()
}

// Quarantined is an item that was set aside.
type Quarantined struct {
	Position uint64
	Record   record.Record
	Reason   string
}

// ListQuarantined returns up to limit of the items set aside, in order of
// position, from the position after on.
func (s *Store) ListQuarantined(ctx context.Context, after uint64, limit int) ([]Quarantined, error) {
	var list []Quarantined
	err := s.read(ctx, func(conn *duck.Conn, _ Mark) error {
		var err error
		list, err = listQuarantined(ctx, conn, after, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list quarantined items: %w", err)
	}
	return list, nil
}

func listQuarantined(ctx context.Context, conn *duck.Conn, after uint64, limit int) ([]Quarantined, error) {
	rows, err := conn.Query(ctx, `SELECT position, record, reason FROM quarantine WHERE position > ? ORDER BY position LIMIT ?`,
		int64(after), int64(limit))
	if err != nil {
		return nil, err
	}
	var list []Quarantined
	for rows.Next() {
		q := Quarantined{Position: uint64(rows.Int64(0)), Reason: rows.Text(2)}
		q.Record, err = record.Decode(q.Position, rows.Bytes(1))
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		list = append(list, q)
	}
	return list, rows.Close()
}

// redrivePage is how many quarantined items are read at a time.
const redrivePage = 256

// Redrive tries to store the items that were set aside, each in a transaction
// of its own and as if it had been stored at its position. It returns how many
// were stored and how many are left. An item that still cannot be stored is no
// error.
func (s *Store) Redrive(ctx context.Context) (stored, left int, err error) {
	for after := uint64(0); ; {
		page, err := s.ListQuarantined(ctx, after, redrivePage)
		if err != nil || len(page) == 0 {
			return stored, left, err
		}
		for i := range page {
			err := s.redriveItem(ctx, &page[i])
			switch {
			case err == nil:
				stored++
			case ctx.Err() != nil, errors.Is(err, ErrInvalidated), errors.Is(err, ErrClosed):
				return stored, left, fmt.Errorf("redrive: %w", err)
			default:
				s.opts.Log.WarnContext(ctx, "item stays in quarantine", "position", page[i].Position, "error", err)
				left++
			}
		}
		after = page[len(page)-1].Position
	}
}

func (s *Store) redriveItem(ctx context.Context, q *Quarantined) error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return ErrClosed
	}
	b := &batch{store: s}
	err := transaction(ctx, s.writer, func() error {
		mark, window, err := readMark(ctx, s.writer)
		if err != nil {
			return err
		}
		deleted, err := s.writer.Exec(ctx, `DELETE FROM quarantine WHERE position = ?`, int64(q.Position))
		if err != nil || deleted == 0 { // another redrive or an erasure has taken it
			b = nil
			return err
		}
		if err := b.open(); err != nil {
			return err
		}
		defer b.close()
		b.quarantined -= deleted
		if err := b.record(ctx, &q.Record, nil); err != nil {
			return err
		}
		_, err = b.finish(ctx, mark, window)
		return err
	})
	if err == nil && b != nil {
		b.committed()
	}
	return classify(err)
}
