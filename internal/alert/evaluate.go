package alert

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

const (
	// MaxCatchUp is how many missed periods are judged after a downtime; those
	// before are passed over.
	MaxCatchUp = 24
	// retryDelay is the wait after the first failed attempt at a period; it
	// doubles up to retryMax.
	retryDelay = 15 * time.Second
	retryMax   = 10 * time.Minute
)

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
