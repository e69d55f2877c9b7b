package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/record"
)

// ApplyParams are the next records of the log.
type ApplyParams struct {
	// Records follow the mark and one another without a gap. Apply does not
	// keep them.
	Records []record.Record
	// Quarantine names the items, by position, that are to be set aside, and
	// why.
	Quarantine map[uint64]string
}

// Apply stores the next records in one transaction: event rows, links, traits,
// quarantined items, the window's history, what was used and the mark; an
// erasure among them takes away what a person has before its position. It
// returns the new mark once that is on disk.
//
// It returns ErrGap, ErrForeign, ErrUnwritable or ErrInvalidated, else an error
// about the data, which is an ItemError if it is known which item is at fault.
// After an error nothing of the batch is visible and the store can be used
// again, except after ErrInvalidated. After an error of the commit itself the
// batch may be stored: applying it again then returns ErrGap.
func (s *Store) Apply(ctx context.Context, p ApplyParams) (Mark, error) {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return Mark{}, ErrClosed
	}
	b := &batch{store: s}
	var mark Mark
	err := transaction(ctx, s.writer, func() error {
		before, window, err := readMark(ctx, s.writer)
		if err != nil {
			return err
		}
		if err := follows(before, p.Records); err != nil {
			return err
		}
		mark, err = b.apply(ctx, p, before, window)
		return err
	})
	if err != nil {
		return Mark{}, fmt.Errorf("apply: %w", classify(err))
	}
	crash.Point("eventstore.committed")
	b.committed()
	return mark, s.checkpointIfDue(ctx)
}

// follows checks that the records continue the mark.
func follows(mark Mark, records []record.Record) error {
	next := mark.Position + 1
	for i := range records {
		r := &records[i]
		switch {
		case r.Store != mark.Store:
			return fmt.Errorf("%w: the record at position %d", ErrForeign, r.Position)
		case r.Position != next || len(r.Items) == 0:
			return fmt.Errorf("%w: position %d with %d items, want position %d", ErrGap, r.Position, len(r.Items), next)
		}
		next = r.Last() + 1
	}
	return nil
}

// apply writes everything of the batch inside the caller's transaction.
func (b *batch) apply(ctx context.Context, p ApplyParams, mark Mark, window int64) (Mark, error) {
	if err := b.open(); err != nil {
		return Mark{}, err
	}
	defer b.close()
	for i := range p.Records {
		r := &p.Records[i]
		if r.Window != window {
			window = r.Window
			if err := b.window(r.Position, window); err != nil {
				return Mark{}, err
			}
		}
		if err := b.record(ctx, r, p.Quarantine); err != nil {
			return Mark{}, err
		}
		mark.Position, mark.Received = r.Last(), r.Received
		mark.MaxProject = max(mark.MaxProject, r.Project)
	}
	return b.finish(ctx, mark, window)
}
