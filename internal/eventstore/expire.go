package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
)

// expireStep is how many positions one step of DeleteOlder covers, so that
// the materializer waits for a moment only.
const expireStep = 200_000

// Retention says which rows have been kept long enough.
type Retention struct {
	Project uint32
	// Now is the time in milliseconds since 1970. Where the newest record was
	// received earlier, that is taken instead: a clock that is ahead lets nothing
	// go.
	Now int64
	// Keep is how long rows are kept, in milliseconds: those go whose ts and
	// whose receipt are both older.
	Keep int64
	// Window is the deduplication window in force, in milliseconds: the claims
	// of rows received within it stay.
	Window int64
}

// before returns the time before which rows go.
func (r Retention) before(newest Mark) int64 { return min(r.Now, newest.Received) - max(r.Keep, 0) }

// DeleteOlder deletes the rows of a project that have been kept long enough
// and returns how many they were. It goes on in short transactions, between
// which records are applied, and what was deleted before an error stays
// deleted. Links and traits stay: they say who a person is, not what it did,
// and later events need them; erasing the person takes them. What was used
// stays counted.
func (s *Store) DeleteOlder(ctx context.Context, r Retention) (rows int64, err error) {
	s.maintenance.Lock()
	defer s.maintenance.Unlock()
	for from := int64(0); ; from += expireStep {
		if from, err = s.nextExpired(ctx, r, from); err != nil || from < 0 {
			break
		}
		deleted, err := s.expire(ctx, r, from)
		if err != nil {
			return rows, fmt.Errorf("delete rows: %w", err)
		}
		rows += deleted
	}
	if err != nil {
		return rows, fmt.Errorf("look for rows to delete: %w", err)
	}
	return rows, nil
}

const expiredRows = `events.project = $1 AND events.ts < $2 AND events.received < $2`

// nextExpired returns the lowest position, from one on, of a row to delete; -1
// if there is none.
func (s *Store) nextExpired(ctx context.Context, r Retention, from int64) (next int64, err error) {
	err = s.read(ctx, func(conn *duck.Conn, mark Mark) error {
		next, err = scalar(ctx, conn, `SELECT coalesce(min(seq), -1) FROM events WHERE `+expiredRows+` AND seq >= $3`,
			int64(r.Project), r.before(mark), from)
		return err
	})
	return next, err
}

// expire deletes the rows of one step, in one transaction.
func (s *Store) expire(ctx context.Context, r Retention, from int64) (deleted int64, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return 0, ErrClosed
	}
	err = transaction(ctx, s.writer, func() error {
		mark, window, err := readMark(ctx, s.writer)
		if err != nil {
			return err
		}
		condition := expiredRows + ` AND events.seq >= $3 AND events.seq < $4`
		args := []any{int64(r.Project), r.before(mark), from, from + expireStep}
		since := mark.Received - max(window, r.Window)
		s.keepFrom(since)
		s.deletions++
		if err := keepClaims(ctx, s.writer, "", condition, append(args, since)); err != nil {
			return err
		}
		if deleted, err = s.writer.Exec(ctx, `DELETE FROM events WHERE `+condition, args...); err != nil {
			return err
		}
		mark.Rows -= deleted
		return writeMark(ctx, s.writer, mark, window)
	})
	if err != nil {
		return 0, classify(err)
	}
	crash.Point("eventstore.expired")
	return deleted, s.checkpointIfDue(ctx)
}
