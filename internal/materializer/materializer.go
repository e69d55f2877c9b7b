// Package materializer moves acknowledged items from the intake store into the
// event store, in order, and has the intake store forget them afterwards. It
// never judges an item: what cannot be stored is set aside, kept and counted.
//
// Invariants:
//   - items are applied in order of position, each exactly once: the event
//     store's own mark decides where to go on;
//   - a record is trimmed only after the event store holds it for good;
//   - an item that cannot be stored, or that kills the process again and
//     again, stops nothing behind it.
package materializer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	// DefaultMaxRows is how many items one transaction takes.
	DefaultMaxRows = 20_000
	// DefaultMaxDelay is how long an item waits for others while the event
	// store is being written to anyway.
	DefaultMaxDelay = 500 * time.Millisecond

	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// Observer is told what the materializer does. Its methods must be quick.
type Observer interface {
	// Batch reports a transaction.
	Batch(items int, took time.Duration)
	// Failed reports a transaction that failed.
	Failed()
	// Quarantined reports an item that was set aside.
	Quarantined()
}

// Params are what a Materializer needs.
type Params struct {
	Intake *intakestore.Store
	Events *eventstore.Store
	// Stored receives a token when records that were not there before are on
	// disk.
	Stored <-chan struct{}
	// Attempt is the path of a file that tells apart a start that makes no
	// progress from the first one.
	Attempt string
	// MaxRows and MaxDelay: 0 means the default.
	MaxRows  int
	MaxDelay time.Duration
	Log      *slog.Logger
	// Fatal must end the process and not return. It is called when one of the
	// stores says that it cannot go on.
	Fatal    func(error)
	Observer Observer
}

// Materializer is the one writer of the event store.
type Materializer struct {
	Params

	mark eventstore.Mark
}

// New returns a Materializer that Run starts.
func New(p Params) *Materializer {
	if p.MaxRows == 0 {
		p.MaxRows = DefaultMaxRows
	}
	if p.MaxDelay == 0 {
		p.MaxDelay = DefaultMaxDelay
	}
	return &Materializer{Params: p}
}

// Run moves items until ctx is done, and then the rest of what is on disk. It
// returns an error only if it cannot go on.
func (m *Materializer) Run(ctx context.Context) error {
	mark, err := m.Events.Mark(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("read mark: %w", err)
	}
	m.mark = mark
	attempt, err := begin(m.Attempt, mark.Position)
	if err != nil {
		return err
	}
	if err := m.recover(ctx, attempt); err != nil {
		return err
	}
	if err := m.follow(ctx); err != nil {
		return err
	}
	return attempt.end()
}

// follow applies what comes until ctx is done, then what is left.
func (m *Materializer) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		moved, err := m.step(ctx)
		if err != nil {
			return err
		}
		if moved == 0 {
			select {
			case <-m.Stored:
			case <-ctx.Done():
			}
			continue
		}
		m.linger(ctx, began.Add(m.MaxDelay))
	}
	for m.mark.Position < m.Intake.Durable() {
		if _, err := m.step(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// linger waits until a time, or until there is enough for a full transaction.
func (m *Materializer) linger(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for m.Intake.Durable()-m.mark.Position < uint64(m.MaxRows) {
		select {
		case <-m.Stored:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// step applies one batch of records, however often that takes, and returns how
// many items it moved.
func (m *Materializer) step(ctx context.Context) (int, error) {
	records, err := m.Intake.Records(m.mark.Position+1, m.MaxRows)
	if err != nil {
		m.Fatal(err)
		return 0, err
	}
	if len(records) == 0 {
		return 0, nil
	}
	began, from := time.Now(), m.mark.Position
	crash.Point("materializer.read")
	if err := m.apply(ctx, records, nil); err != nil {
		if err := m.applySingly(ctx, records, err); err != nil {
			return 0, err
		}
	}
	moved := int(m.mark.Position - from)
	m.Observer.Batch(moved, time.Since(began))
	return moved, m.trim()
}

func (m *Materializer) trim() error {
	crash.Point("materializer.applied")
	if err := m.Intake.Trim(m.mark.Position); err != nil {
		m.Fatal(err)
		return err
	}
	crash.Point("materializer.trimmed")
	return nil
}

// apply writes records in one transaction. On an error nothing was written.
func (m *Materializer) apply(ctx context.Context, records []record.Record, quarantine map[uint64]string) error {
	ctx = context.WithoutCancel(ctx) // a transaction is not cut short
	mark, err := m.Events.Apply(ctx, eventstore.ApplyParams{Records: records, Quarantine: quarantine})
	if err == nil {
		m.mark = mark
		return nil
	}
	m.Observer.Failed()
	// The commit may have landed all the same: the store's own mark tells.
	if mark, markErr := m.Events.Mark(ctx); markErr == nil && mark.Position == records[len(records)-1].Last() {
		m.Log.Warn("a batch was stored, but not without trouble", "position", mark.Position, "error", err)
		m.mark = mark
		return nil
	}
	return err
}

// hopeless says that trying again cannot help: the stores do not belong
// together, or the event store has given up.
func hopeless(err error) bool {
	return errors.Is(err, eventstore.ErrInvalidated) || errors.Is(err, eventstore.ErrGap) ||
		errors.Is(err, eventstore.ErrForeign) || errors.Is(err, eventstore.ErrClosed)
}

// applySingly applies records whose transaction failed item by item, so that
// an item that cannot be stored is set aside and the others are not.
func (m *Materializer) applySingly(ctx context.Context, records []record.Record, cause error) error {
	m.Log.Warn("a batch could not be stored; going item by item", "from", m.mark.Position+1, "error", cause)
	for _, r := range records {
		for i := range r.Items {
			single := r
			single.Position, single.Items = r.Position+uint64(i), r.Items[i:i+1]
			if err := m.applyOne(ctx, single); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyOne applies a record of one item, or sets the item aside, and keeps at
// it while neither can be written: then it is not the item that is at fault.
func (m *Materializer) applyOne(ctx context.Context, r record.Record) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := m.apply(ctx, []record.Record{r}, nil)
		if err == nil {
			return nil
		}
		if hopeless(err) {
			m.Fatal(err)
			return err
		}
		if !errors.Is(err, eventstore.ErrUnwritable) && m.setAside(ctx, r, err.Error()) == nil {
			return nil
		}
		m.Log.Error("the event store cannot be written; will try again", "position", r.Position, "pause", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("stopped while the event store could not be written: %w", err)
		}
	}
}

func (m *Materializer) setAside(ctx context.Context, r record.Record, reason string) error {
	if err := m.apply(ctx, []record.Record{r}, map[uint64]string{r.Position: reason}); err != nil {
		return err
	}
	m.Log.Error("an item cannot be stored and was set aside; actionpulse repair tries it again", "position", r.Position, "reason", reason)
	m.Observer.Quarantined()
	return nil
}
