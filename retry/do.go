package retry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// The defaults of [Policy] and [Delays].
const (
	DefaultFirst       = time.Second
	DefaultMax         = 30 * time.Second
	DefaultJitter      = 0.25
	DefaultMaxAttempts = 10
	DefaultBudget      = 15 * time.Minute
)

// Delays are the waits where the server names none: First, then double each
// time up to Max, each longer or shorter by up to the share Jitter.
type Delays struct {
	// First is the wait after the first failure; 0 means DefaultFirst.
	First time.Duration
	// Max is the longest wait before jitter; 0 means DefaultMax.
	Max time.Duration
	// Jitter is a share from 0 to 1; 0 means DefaultJitter.
	Jitter float64
	// Rand returns a number in [0, 1); nil means math/rand/v2.Float64.
	Rand func() float64
}

// After returns the wait after the n-th failure in a row, n from 1.
func (d Delays) After(n int) time.Duration {
	d = d.withDefaults()
	wait := min(float64(d.Max), float64(d.First)*math.Pow(2, float64(max(n, 1)-1)))
	return time.Duration(wait * (1 + d.Jitter*(2*d.Rand()-1)))
}

func (d Delays) withDefaults() Delays {
	if d.First <= 0 {
		d.First = DefaultFirst
	}
	if d.Max <= 0 {
		d.Max = DefaultMax
	}
	if d.Jitter <= 0 {
		d.Jitter = DefaultJitter
	}
	if d.Rand == nil {
		d.Rand = rand.Float64
	}
	return d
}

// Policy bounds the repeats of one request.
type Policy struct {
	// MaxAttempts counts the first attempt too; 0 means DefaultMaxAttempts.
	MaxAttempts int
	// Budget is the time after which no further attempt starts, counted from
	// the first one; 0 means DefaultBudget. A wait that would end later is
	// not begun.
	Budget time.Duration
	Delays Delays
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Sleep waits for d or until ctx is done, and then returns its error; nil
	// means a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// OnRetry, if set, is called before each wait.
	OnRetry func(Retry)
}

// Retry describes a repeat that is about to be made.
type Retry struct {
	// Attempt is the number of the attempt that failed, from 1.
	Attempt int
	// Wait is how long it is until the next.
	Wait    time.Duration
	Outcome Outcome
	Verdict Verdict
}

// Error says that a request did not succeed and is not repeated any more.
type Error struct {
	// Attempts is how often the request was made.
	Attempts int
	// Outcome and Verdict are those of the last attempt. Verdict.Retry tells
	// the two ends apart: true means that attempts or time ran out, false
	// that a repeat would not help.
	Outcome Outcome
	Verdict Verdict
}

func (e *Error) Error() string {
	what := e.Verdict.Reason
	switch {
	case e.Outcome.Err != nil:
		what = fmt.Sprintf("%s: %v", what, e.Outcome.Err)
	case e.Outcome.Code != "":
		what = fmt.Sprintf("%s: %d %s", what, e.Outcome.Status, e.Outcome.Code)
	default:
		what = fmt.Sprintf("%s: %d", what, e.Outcome.Status)
	}
	if e.Verdict.Retry {
		return fmt.Sprintf("gave up after %d attempts: %s", e.Attempts, what)
	}
	return what
}

// Unwrap returns the error of the last attempt, if there was no answer.
func (e *Error) Unwrap() error { return e.Outcome.Err }

// Do calls once until it succeeds and returns what the last call returned.
// Calls follow one another, never two at a time. It returns an [*Error] when
// a repeat would not help, or attempts or time have run out; and, wrapped,
// the cause of ctx when that ends a wait. ctx is passed to once as it is.
func Do[T any](ctx context.Context, p Policy, once func(context.Context) (T, Outcome)) (T, error) {
	p = p.withDefaults()
	start := p.Now()
	for attempt := 1; ; attempt++ {
		result, outcome := once(ctx)
		if outcome.Succeeded() {
			return result, nil
		}
		verdict := Decide(outcome, p.Now())
		if ctx.Err() != nil && (verdict.Retry || outcome.Err != nil) {
			return result, interrupted(attempt, outcome, context.Cause(ctx))
		}
		wait := verdict.Wait
		if !verdict.Exact {
			wait = p.Delays.After(attempt)
		}
		if !verdict.Retry || attempt >= p.MaxAttempts || p.Now().Add(wait).Sub(start) > p.Budget {
			return result, &Error{Attempts: attempt, Outcome: outcome, Verdict: verdict}
		}
		if p.OnRetry != nil {
			p.OnRetry(Retry{Attempt: attempt, Wait: wait, Outcome: outcome, Verdict: verdict})
		}
		if err := p.Sleep(ctx, wait); err != nil {
			return result, interrupted(attempt, outcome, err)
		}
	}
}

// interrupted says that the caller ended the work, and keeps what the last
// attempt met.
func interrupted(attempts int, o Outcome, cause error) error {
	return errors.Join(fmt.Errorf("stopped after %d attempts: %w", attempts, cause), o.Err)
}

func (p Policy) withDefaults() Policy {
	if p.MaxAttempts <= 0 {
		p.MaxAttempts = DefaultMaxAttempts
	}
	if p.Budget <= 0 {
		p.Budget = DefaultBudget
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.Sleep == nil {
		p.Sleep = sleep
	}
	p.Delays = p.Delays.withDefaults()
	return p
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
