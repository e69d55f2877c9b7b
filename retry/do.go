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

// Timeout reports whether the last attempt ended because time ran out, as
// net.Error does: http.Client shows it in url.Error.
func (e *Error) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Outcome.Err)
	return ok && t.Timeout()
}

// Do calls once until it succeeds and returns what the last call returned.
// Calls follow one another, never two at a time. It returns an [*Error] when
// a repeat would not help, or attempts or time have run out, which they have
// when ctx has a deadline before the end of the wait; and, wrapped, the cause
// of ctx when that ends a wait. ctx is passed to once as it is.
func Do[T any](ctx context.Context, p Policy, once func(context.Context) (T, Outcome)) (T, error) {
	s := p.begin()
	for {
		result, outcome := once(ctx)
		s.attempts++
		if outcome.Succeeded() {
			return result, nil
		}
		again := s.judge(outcome, s.attempts)
		if ctx.Err() != nil && (again.Verdict.Retry || outcome.Err != nil) {
			return result, interrupted(s.attempts, outcome, context.Cause(ctx))
		}
		if !s.mayRepeat(ctx, again) {
			return result, s.ended(again)
		}
		if err := s.wait(ctx, again); err != nil {
			return result, interrupted(s.attempts, outcome, err)
		}
	}
}

// series is the attempts at one request.
type series struct {
	policy   Policy
	start    time.Time
	attempts int
}

func (p Policy) begin() series {
	p = p.withDefaults()
	return series{policy: p, start: p.Now()}
}

// judge says of the attempt that was counted last whether the table allows a
// repeat, and after which wait; failures is how many in a row there were.
func (s *series) judge(o Outcome, failures int) Retry {
	verdict := Decide(o, s.policy.Now())
	wait := verdict.Wait
	if !verdict.Exact {
		wait = s.policy.Delays.After(failures)
	}
	return Retry{Attempt: s.attempts, Wait: wait, Outcome: o, Verdict: verdict}
}

// mayRepeat reports whether the table, the attempts and the time allow it.
func (s *series) mayRepeat(ctx context.Context, again Retry) bool {
	return again.Verdict.Retry && s.attempts < s.policy.MaxAttempts && s.timeFor(ctx, again.Wait)
}

// timeFor reports whether a wait ends within the budget and before ctx does.
func (s *series) timeFor(ctx context.Context, wait time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	return wait <= s.left()
}

// left is what is left of the budget.
func (s *series) left() time.Duration {
	return s.policy.Budget - s.policy.Now().Sub(s.start)
}

// wait tells of a repeat and waits for its time.
func (s *series) wait(ctx context.Context, again Retry) error {
	if s.policy.OnRetry != nil {
		s.policy.OnRetry(again)
	}
	return s.policy.Sleep(ctx, again.Wait)
}

func (s *series) ended(last Retry) *Error {
	return &Error{Attempts: s.attempts, Outcome: last.Outcome, Verdict: last.Verdict}
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
