package idempotency

import (
	"errors"
	"time"
)

// Problem says why a request is not done.
type Problem int

// The problems.
const (
	// Missing: the policy requires a key and there is none.
	Missing Problem = iota + 1
	// Malformed: the key breaks the policy's rule, or there are two.
	Malformed
	// Mismatch: the key names another request's unit of work.
	Mismatch
	// StillRunning: the first request with this key has not ended.
	StillRunning
)

// Error is a refusal by the key layer: the work has not been done by this
// request.
type Error struct {
	Problem Problem
	// Refusal is what the policy answers it with.
	Refusal Refusal
	// Record is what the key names, for Mismatch and StillRunning. Its answer
	// must not be shown.
	Record *Record
	// Differs names the parts of the request that differ, for Mismatch: facts,
	// top-level members of the body, or "body".
	Differs []string
	// SameJSON says, for Mismatch, that nothing differs but the spelling of the
	// body's JSON.
	SameJSON bool
	// RetryAfter is when to ask again, for StillRunning.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Refusal.Code + ": " + e.Refusal.Message }

// Is reports whether target is an *Error with the same problem.
func (e *Error) Is(target error) bool {
	t, ok := errors.AsType[*Error](target)
	return ok && t.Problem == e.Problem
}

// ErrLeaseLost is returned when an owner writes whose claim has passed to
// another. Nothing was written.
var ErrLeaseLost = errors.New("the claim on the idempotency key has passed to another owner")

// refuse makes the error for a problem.
func (p *Policy) refuse(problem Problem) *Error {
	e := &Error{Problem: problem}
	switch problem {
	case Missing:
		e.Refusal = p.Refusals.Missing
	case Malformed:
		e.Refusal = p.Refusals.Malformed
	case Mismatch:
		e.Refusal = p.Refusals.Conflict
	case StillRunning:
		e.Refusal = p.Refusals.Running
		e.RetryAfter = p.Running.RetryAfter
		if e.RetryAfter == 0 {
			e.RetryAfter = DefaultRetryAfter
		}
	}
	return e
}
