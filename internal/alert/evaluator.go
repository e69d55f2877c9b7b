package alert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

const (
	// maxQueries is how many alerts a process judges at once: most of the
	// readers of the event store are for people.
	maxQueries = 2
	// batch is how many due alerts are read at once.
	batch = 64
	// pollInterval is how soon a due alert is looked at.
	pollInterval = time.Second
	// MaxCatchUp is how many missed periods are judged after a downtime; those
	// before are passed over.
	MaxCatchUp = 24
	// retryDelay is the wait after the first failed attempt at a period; it
	// doubles up to retryMax.
	retryDelay = 15 * time.Second
	retryMax   = 10 * time.Minute

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
	for {
		due, err := e.params.Queue.Due(ctx, DueParams{
			Now: h.now, Stored: h.stored.Add(-e.params.Settle), Passed: h.now.Add(-e.params.Settle), Limit: batch, Offset: stuck,
		})
		if err != nil {
			return total, fmt.Errorf("find due alerts: %w", err)
		}
		moved := e.handleAll(ctx, h, due)
		total, stuck = total+moved, stuck+len(due)-moved
		if ctx.Err() != nil || len(due) < batch && moved == 0 {
			return total, nil
		}
	}
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

// errWait says that a period cannot be judged yet.
var errWait = errors.New("the period cannot be judged yet")

func (e *Evaluator) judge(ctx context.Context, h horizon, due *Due, a *Alert) error {
	limit := h.of(a.Kind).Add(-e.params.Settle)
	if a.Next.End.After(limit) || a.RetryAt.After(h.now) {
		return errWait
	}
	if first, missed := a.catchUp(limit); missed > 0 {
		return e.skip(ctx, h, a, first, missed)
	}
	subject, err := e.subject(ctx, due, a)
	if err != nil {
		return err
	}
	o, stored, err := e.params.Reader.observe(ctx, subject, &a.Definition, a.Next)
	if err != nil {
		return e.failed(ctx, h, a, err)
	}
	if a.Kind == Trend && stored.Before(a.Next.End.Add(e.params.Settle)) {
		return errWait
	}
	return e.record(ctx, h, a, a.Judge(o))
}

// subject is what a reader must know of an alert.
func (e *Evaluator) subject(ctx context.Context, due *Due, a *Alert) (subject, error) {
	s := subject{project: due.Project, made: due.CreatedAt}
	baseline := a.baseline(a.Next)
	if a.Kind == Trend || len(baseline) == 0 {
		return s, nil
	}
	var err error
	s.judged, err = e.params.Queue.Values(ctx, ValuesParams{
		AlertID: a.ID, Revision: a.Revision, From: baseline[len(baseline)-1].Start, To: a.Next.Start,
	})
	if err != nil {
		return s, fmt.Errorf("read earlier values of an alert: %w", err)
	}
	return s, nil
}

// catchUp is the first period to be judged, and how many before it are to be
// passed over.
func (a *Alert) catchUp(limit time.Time) (first Period, missed int64) {
	var due []Period
	for p := a.Next; !p.End.After(limit); p = a.After(p) {
		due = append(due, p)
		if len(due) > MaxCatchUp {
			due = due[1:]
			missed++
		}
	}
	return due[0], missed
}

// skip passes over what has been missed for too long.
func (e *Evaluator) skip(ctx context.Context, h horizon, a *Alert, first Period, missed int64) error {
	e.params.Log.Warn("periods of an alert were passed over", "alert", a.ID, "from", a.Next.Start, "to", first.Start, "periods", missed)
	return e.change(ctx, h, a, ChangeParams{Step: func(s *Step) error { return s.Skip(first, missed) }})
}

// failed notes that a period could not be read. It is tried again until the
// next one is due, too; then it is given up as not known.
func (e *Evaluator) failed(ctx context.Context, h horizon, a *Alert, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	problem := QueryFailed
	if fault.CodeOf(cause) == api.CodeQueryTimeout {
		problem = QueryTimeout
	}
	e.params.Log.Warn("the metric of an alert could not be read", "alert", a.ID, "attempt", a.Attempts+1, "error", cause)
	if !a.After(a.Next).End.After(h.of(a.Kind).Add(-e.params.Settle)) {
		return e.record(ctx, h, a, Judgement{Verdict: Unknown, Problem: problem})
	}
	delay := min(retryDelay<<min(a.Attempts, 10), retryMax)
	return e.change(ctx, h, a, ChangeParams{Step: func(s *Step) error {
		s.Alert.note(problem, s.At)
		s.Alert.Attempts++
		s.Alert.RetryAt = s.At.Add(delay)
		return nil
	}})
}

// record writes the judgement of the next period.
func (e *Evaluator) record(ctx context.Context, h horizon, a *Alert, j Judgement) error {
	told := false
	err := e.change(ctx, h, a, ChangeParams{
		Near: a.Next, Evaluation: &Evaluation{Period: a.Next, Judgement: j, At: h.now},
		Step: func(s *Step) error {
			err := s.Judge(j)
			told = len(s.Messages) > 0
			return err
		},
	})
	if err != nil {
		return err
	}
	e.params.Judged(j.Verdict)
	if told {
		e.params.Told()
	}
	return nil
}

// change makes a step with an alert if it is still as it was when it was read.
func (e *Evaluator) change(ctx context.Context, h horizon, a *Alert, p ChangeParams) error {
	p.ProjectID, p.AlertID, p.At = a.ProjectID, a.ID, h.now
	p.NewID = func() (string, error) { return id.New(h.now, e.params.Random) }
	p.Expect = &Expectation{Revision: a.Revision, Next: a.Next}
	_, found, err := e.params.Store.Change(ctx, p)
	if err == nil && !found {
		return ErrStale
	}
	return err //nolint:wrapcheck // the caller logs it with the alert
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
