package eventstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
)

const (
	// defaultCopyStep is how many positions are copied while the writer waits.
	defaultCopyStep = 200_000
	// maxCopies is how often copying begins anew because an erasure came in
	// between; the next copy is made in one go, for which the writer waits.
	maxCopies = 3
)

// tables are all there are, the large one first. Those that hold nothing of
// persons are written anew, too: what DuckDB knows of a table shares the pieces
// of the file with what it knows of others, and stays for as long as one of them
// is as it was.
var tables = []string{
	"events", "links", "link_spans", "traits", "quarantine", "windows", "mark", "usage", "erased_claims", "erasures", "taken_spans",
}

// next is the name of a table while it is being written anew.
func next(table string) string { return table + "_next" }

// Rewrite leaves nothing in the store's files of what was erased before it was
// called. DuckDB only marks deleted rows, and does not clear the blocks that it
// gives up. So the tables are written anew and take the place of the old ones in
// one transaction; then, as soon as no reader
// sees the old ones any more, every free block of the file is overwritten.
//
// It needs as much free space again as the tables take, and the time to write
// that: records are applied meanwhile, and wait for each step that is copied, a
// second or so for 200,000 rows on a busy machine. If nothing
// was deleted since the last call that succeeded in this process, it does
// nothing; calls wait for one another, so that one of them serves all that wait.
// After an error or a crash the store is as it was, but for room in the file,
// and the call can be repeated.
func (s *Store) Rewrite(ctx context.Context) error {
	s.maintenance.Lock()
	defer s.maintenance.Unlock()
	deletions, err := s.unclean(ctx)
	if err != nil || deletions == s.clean {
		return err
	}
	began := time.Now()
	if err := s.renew(ctx); err != nil {
		return fmt.Errorf("rewrite the event store: %w", classify(err))
	}
	if err := s.scrub(ctx); err != nil {
		return fmt.Errorf("overwrite what the event store gave up: %w", classify(err))
	}
	s.clean = deletions
	s.opts.Log.InfoContext(ctx, "the event store was rewritten", "took", time.Since(began))
	return nil
}

// unclean returns how often something was deleted since the store was opened.
func (s *Store) unclean(ctx context.Context) (n int64, err error) {
	err = s.writing(ctx, func() error {
		n = s.deletions
		return nil
	})
	return n, err
}

// writing runs fn as the only user of the writer.
func (s *Store) writing(ctx context.Context, fn func() error) error {
	s.write.Lock()
	defer s.write.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fn()
}

// renew puts tables without deleted rows in the place of the present ones.
func (s *Store) renew(ctx context.Context) error {
	for try := 0; ; try++ {
		swapped := false
		deletions, err := s.beginCopy(ctx)
		if err != nil {
			return err
		}
		from := int64(0)
		if try < maxCopies {
			if from, err = s.copyRows(ctx); err != nil {
				return err
			}
		}
		err = s.writing(ctx, func() error {
			if try < maxCopies && s.deletions != deletions {
				return nil // the copy holds what has just been erased
			}
			swapped = true
			return s.swap(ctx, from)
		})
		if err != nil || swapped {
			return err
		}
	}
}

// beginCopy makes an empty table for the copy and returns how often something
// was deleted before.
func (s *Store) beginCopy(ctx context.Context) (deletions int64, err error) {
	err = s.writing(ctx, func() error {
		deletions = s.deletions
		return transaction(ctx, s.writer, func() error {
			if err := dropLeftovers(ctx, s.writer); err != nil {
				return err
			}
			_, err := s.writer.Exec(ctx, createNext("events"))
			return err
		})
	})
	return deletions, err
}

// dropLeftovers removes what a rewrite that was cut short has left.
func dropLeftovers(ctx context.Context, conn *duck.Conn) error {
	for _, table := range append([]string{filler}, tables...) {
		if table != filler {
			table = next(table)
		}
		if _, err := conn.Exec(ctx, `DROP TABLE IF EXISTS `+table); err != nil {
			return fmt.Errorf("drop %s: %w", table, err)
		}
	}
	return nil
}

// createNext returns the statement that makes the new form of a table.
func createNext(table string) string {
	for _, statement := range slices.Concat(firstSchema, secondSchema) {
		if rest, ok := strings.CutPrefix(statement, "CREATE TABLE "+table+" "); ok {
			return "CREATE TABLE " + next(table) + " " + rest
		}
	}
	panic("no such table: " + table)
}

// copyRows copies the rows that are there, step by step, and returns the
// position from which on rows are yet to be copied.
func (s *Store) copyRows(ctx context.Context) (from int64, err error) {
	for {
		more := false
		err := s.writing(ctx, func() error {
			mark, _, err := readMark(ctx, s.writer)
			if err != nil {
				return err
			}
			if more = from+s.copyStep <= int64(mark.Position); !more {
				return nil
			}
			_, err = s.writer.Exec(context.WithoutCancel(ctx), `INSERT INTO events_next FROM events WHERE seq >= ? AND seq < ?`, from, from+s.copyStep)
			if err != nil {
				return err
			}
			from += s.copyStep
			return s.checkpointIfDue(ctx)
		})
		if err != nil || !more {
			return from, err
		}
	}
}

// swap copies the rows from a position on and all of the smaller tables, and
// puts the new tables in the place of the old ones.
func (s *Store) swap(ctx context.Context, from int64) error {
	calm := context.WithoutCancel(ctx)
	err := transaction(ctx, s.writer, func() error {
		if _, err := s.writer.Exec(calm, `INSERT INTO events_next FROM events WHERE seq >= ?`, from); err != nil {
			return err
		}
		for _, table := range tables[1:] {
			if _, err := s.writer.Exec(calm, createNext(table)); err != nil {
				return err
			}
			if _, err := s.writer.Exec(calm, `INSERT INTO `+next(table)+` FROM `+table); err != nil {
				return err
			}
		}
		for _, table := range tables {
			for _, statement := range []string{`DROP TABLE ` + table, `ALTER TABLE ` + next(table) + ` RENAME TO ` + table} {
				if _, err := s.writer.Exec(calm, statement); err != nil {
					return err
				}
			}
		}
		crash.Point("eventstore.swapping")
		return nil
	})
	if err != nil {
		return err
	}
	crash.Point("eventstore.swapped")
	return nil
}
