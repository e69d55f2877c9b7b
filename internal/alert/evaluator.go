package alert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxQueries is how many alerts a process judges at once: most of the
	// readers of the event store are for people.
	maxQueries = 2
	// batch is how many due alerts are read at once.
	batch = 64
	// pollInterval is how soon a due alert is looked at.
	pollInterval = time.Second

	// keepEvaluations and keepHistory are for how long rows are kept: the
	// first longer than the longest baseline.
	keepEvaluations = 40 * 24 * time.Hour
	keepHistory     = 180 * 24 * time.Hour
	sweepSize       = 500
)

// EvaluatorParams configures an [Evaluator]; every member must be set.
type EvaluatorParams struct {
	Store  Store
	Queue  Queue
	Reader *Reader
	// StoredThrough is the time before which everything acknowledged can be
	// queried.
	StoredThrough func(ctx context.Context) (time.Time, error)
	// Settle is how long after its end a period is judged, for events whose
	// time lies before it and that come later.
	Settle time.Duration
	// Random is where ids come from: crypto/rand.Reader.
	Random io.Reader
	// Told tells the sender of webhooks that there is something to send.
	Told func()
	// Judged counts a judgement.
	Judged func(Verdict)
	Log    *slog.Logger
}

// Evaluator judges periods when they are due. Several may work on one store,
// each with events of its own: the first to judge a period has judged it.
type Evaluator struct {
	params EvaluatorParams
	woken  chan struct{}
}

// NewEvaluator returns an Evaluator, which does nothing until it runs.
func NewEvaluator(p EvaluatorParams) *Evaluator {
	return &Evaluator{params: p, woken: make(chan struct{}, 1)}
}

// Wake tells the evaluator that something may be due. It never waits.
func (e *Evaluator) Wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

// Run judges until ctx is done.
func (e *Evaluator) Run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if _, err := e.Step(ctx); err != nil && ctx.Err() == nil {
			e.params.Log.Warn("due alerts were not judged", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-e.woken:
		case <-ticker.C:
		}
	}
}

// Step judges every period that is due by now, a few alerts at a time, and
// says how many times an alert has moved on.
func (e *Evaluator) Step(ctx context.Context) (int, error) {
	h, err := e.horizon(ctx)
	if err != nil {
		return 0, err
	}
	total, stuck := 0, 0
	for ctx.Err() == nil {
		due, err := e.params.Queue.Due(ctx, DueParams{
			Now: h.now, Stored: h.stored.Add(-e.params.Settle), Passed: h.now.Add(-e.params.Settle), Limit: batch, Offset: stuck,
		})
		if err != nil {
			return total, fmt.Errorf("find due alerts: %w", err)
		}
		moved := e.handleAll(ctx, h, due)
		total, stuck = total+moved, stuck+len(due)-moved
		if len(due) < batch && moved == 0 {
			break
		}
	}
	return total, nil
}

// handleAll judges a period of each alert, and says how many have moved on.
func (e *Evaluator) handleAll(ctx context.Context, h horizon, due []Due) int {
	var moved counter
	var workers sync.WaitGroup
	free := make(chan struct{}, maxQueries)
	for i := range due {
		free <- struct{}{}
		workers.Go(func() {
			defer func() { <-free }()
			if e.handle(ctx, h, &due[i]) {
				moved.add()
			}
		})
	}
	workers.Wait()
	return moved.n
}

// counter counts what several goroutines do.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// horizon is up to when periods may be judged. A clock of the process that is
// ahead moves neither further than the clock which all processes share.
type horizon struct{ now, stored time.Time }

func (e *Evaluator) horizon(ctx context.Context) (h horizon, err error) {
	if h.now, err = e.params.Queue.Now(ctx); err != nil {
		return h, fmt.Errorf("read the time: %w", err)
	}
	if h.stored, err = e.params.StoredThrough(ctx); err != nil {
		return h, fmt.Errorf("read how far events are stored: %w", err)
	}
	if h.stored.After(h.now) {
		h.stored = h.now
	}
	return h, nil
}

// of is the horizon of a kind of source. How long records wait is known also
// while they wait.
func (h *horizon) of(k Kind) time.Time {
	if k == Trend {
		return h.stored
	}
	return h.now
}

// handle judges the next period of an alert, and says whether it has moved on.
func (e *Evaluator) handle(ctx context.Context, h horizon, due *Due) bool {
	a, found, err := e.params.Store.Find(ctx, due.ProjectID, due.ID)
	if err == nil && found {
		err = e.judge(ctx, h, due, &a)
	}
	switch {
	case errors.Is(err, ErrStale) || errors.Is(err, errWait) || err != nil && ctx.Err() != nil:
		return false
	case err != nil:
		e.params.Log.Warn("an alert was not judged", "alert", due.ID, "error", err)
		return false
	default:
		return found
	}
}

// Sweep deletes what is old, and what is left of deleted alerts.
func (e *Evaluator) Sweep(ctx context.Context) (int, error) {
	now, err := e.params.Queue.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the time: %w", err)
	}
	total := 0
	for {
		n, err := e.params.Queue.Sweep(ctx, SweepParams{
			Evaluations: now.Add(-keepEvaluations), History: now.Add(-keepHistory), Limit: sweepSize,
		})
		total += n
		if err != nil || n == 0 {
			return total, err //nolint:wrapcheck // it says what it was for
		}
	}
}
