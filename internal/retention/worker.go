package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// projectPage is how many projects are read at once.
	projectPage = 200
	// replayStep is how many chunks are deleted at once.
	replayStep = 1000
)

// Project is a project and how long it wants to keep what.
type Project struct {
	ID     string
	Number uint32
	Days   Days
}

// Store knows the projects.
type Store interface {
	// ListRetention returns at most limit projects of all organizations with
	// numbers above after, in order of number.
	ListRetention(ctx context.Context, after uint32, limit int) ([]Project, error)
	// NoteReceived notes when a server has received the newest event that it has
	// stored. Ages of chunks are counted up to the latest of what is noted.
	NoteReceived(ctx context.Context, server [16]byte, at time.Time) error
}

// Age says what is old.
type Age struct {
	// Now is the time that age is counted up to.
	Now time.Time
	// Keep is how long something is kept, Window how long ids of events are
	// remembered.
	Keep, Window time.Duration
}

// Events deletes events.
type Events interface {
	// DeleteOlder deletes those events of a project whose time and receipt both
	// lie longer ago than they are kept, in bounded steps, and returns how many
	// that were. Age is counted up to the receipt of the newest event where that
	// is earlier than Now. The claims of those received within the window stay.
	DeleteOlder(ctx context.Context, project uint32, a Age) (int64, error)
}

// Replays deletes chunks of session replays.
type Replays interface {
	// DeleteOlder deletes at most so many chunks of a project that were received
	// longer ago than they are kept. Fewer means that there are no more. Age is
	// counted up to the newest event of any server, and to the clock that all of
	// them share, where these are earlier than Now.
	DeleteOlder(ctx context.Context, projectID string, a Age, most int) (int, error)
}

// Observer is told what was deleted.
type Observer interface {
	Deleted(events, chunks int64)
	// Swept reports that all projects have been looked at.
	Swept(at time.Time)
}

// Params configures a Worker.
type Params struct {
	Rules   Rules
	Store   Store
	Events  Events
	Replays Replays
	// Server is the server that this is.
	Server [16]byte
	// Now is the time of intake.
	Now func() time.Time
	// Received is when the newest event that is stored here was received.
	Received func(ctx context.Context) (time.Time, error)
	Observer Observer
	Log      *slog.Logger
}

// Worker has deleted what was kept long enough.
type Worker struct{ Params }

// NewWorker returns a worker.
func NewWorker(p Params) *Worker { return &Worker{p} }

// Run sweeps at once and then in each interval, until ctx is done.
func (w *Worker) Run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := w.Sweep(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn("what was kept long enough is still there; it is tried again later", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep looks at all projects once. A project that fails keeps nobody else
// from being looked at.
func (w *Worker) Sweep(ctx context.Context) error {
	if err := w.noteReceived(ctx); err != nil {
		return err
	}
	now := w.Now()
	var errs []error
	for after := uint32(0); ; {
		page, err := w.Store.ListRetention(ctx, after, projectPage)
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list projects: %w", err))...)
		}
		for _, p := range page {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := w.sweep(ctx, p, now); err != nil {
				errs = append(errs, fmt.Errorf("project %s: %w", p.ID, err))
			}
			after = p.Number
		}
		if len(page) < projectPage {
			break
		}
	}
	if len(errs) == 0 {
		w.Observer.Swept(w.Now())
	}
	return errors.Join(errs...)
}

// noteReceived has the store know how far events vouch for the time: it cannot
// look at those itself.
func (w *Worker) noteReceived(ctx context.Context) error {
	received, err := w.Received(ctx)
	if err != nil {
		return fmt.Errorf("look for the newest event: %w", err)
	}
	if err := w.Store.NoteReceived(ctx, w.Server, received); err != nil {
		return fmt.Errorf("note the newest event: %w", err)
	}
	return nil
}

// sweep deletes what a project has kept long enough.
func (w *Worker) sweep(ctx context.Context, p Project, now time.Time) error {
	events, err := w.sweepEvents(ctx, p, now)
	chunks, replayErr := w.sweepReplays(ctx, p, now)
	if events+chunks > 0 {
		w.Observer.Deleted(events, chunks)
		w.Log.Info("deleted what was kept long enough", "project", p.ID, "events", events, "replay_chunks", chunks)
	}
	return errors.Join(err, replayErr)
}

func (w *Worker) sweepEvents(ctx context.Context, p Project, now time.Time) (int64, error) {
	keep, ends := w.Rules.eventsKept(p.Days)
	if !ends {
		return 0, nil
	}
	n, err := w.Events.DeleteOlder(ctx, p.Number, Age{Now: now, Keep: keep, Window: w.Rules.Window})
	if err != nil {
		return n, fmt.Errorf("delete events: %w", err)
	}
	return n, nil
}

func (w *Worker) sweepReplays(ctx context.Context, p Project, now time.Time) (deleted int64, err error) {
	keep, ends := w.Rules.replaysKept(p.Days)
	if !ends {
		return 0, nil
	}
	for {
		n, err := w.Replays.DeleteOlder(ctx, p.ID, Age{Now: now, Keep: keep}, replayStep)
		deleted += int64(n)
		if err != nil {
			return deleted, fmt.Errorf("delete replays: %w", err)
		}
		if n < replayStep {
			return deleted, nil
		}
	}
}
