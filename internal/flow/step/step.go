// Package step is the port between flows and the types of their steps: what a
// type must say of itself, what it is given to run, and what it gives back.
// Each type has a folder below this one, and all pass one conformance test,
// package steptest.
//
// Invariants:
//   - a step keeps nothing between runs: what it gives back depends on its
//     scope and on what it has called;
//   - every call to the outside carries [Run.Key], which is the same on every
//     attempt of the same step of the same iteration of the same execution;
//   - whether a failed call may have had an effect is said by [Error.Outcome],
//     and never guessed in favour of a second call.
package step

import (
	"context"
	"encoding/json"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/flow/template"
	"github.com/actionpulse/actionpulse/internal/model"
)

// Type is a kind of step.
type Type interface {
	// Name is the member "type" of its steps.
	Name() string
	// Schema is a JSON Schema (2020-12) of an object with the members that are
	// the type's own, beside those that every step has.
	Schema() json.RawMessage
	// Compile reads the members of one step, of which the schema has already
	// been checked. What it refuses is an [*Issues].
	Compile(c *Compiler) (Program, error)
}

// Effect says what it means to run a step again.
type Effect uint8

// The effects.
const (
	// Pure: nothing happens outside. Only its result is journalled.
	Pure Effect = iota
	// Timed: time passes. Its start is journalled, and after an interruption
	// it goes on from there.
	Timed
	// Calls: something outside is called. Its start is journalled before, and
	// when it was interrupted nobody knows what has happened.
	Calls
)

// Program is a step that was compiled.
type Program interface {
	Effect() Effect
	// Run runs the step. Errors are [*Error]; any other error is a fault of the
	// server and fails the step as well. The context ends when the step's or
	// the execution's time is over, when it is cancelled, and when the server
	// stops and cannot wait any longer.
	Run(ctx context.Context, r *Run) (Result, error)
}

// Addressed is a Program that can say whom it is about to call, so that this is
// known of a call that is interrupted, too.
type Addressed interface {
	// Callee returns the names of provider and model, empty if they cannot be
	// told.
	Callee(s *template.Scope) (provider, model string)
}

// Run is what a step is given.
type Run struct {
	ProjectID string
	// Scope is what its expressions see.
	Scope *template.Scope
	// Key is the derived Idempotency-Key for what the step calls.
	Key string
	// Attempt counts from 1.
	Attempt int
	// Started is when the step began first, also if that was before a restart.
	Started time.Time
	// Now is the time.
	Now func() time.Time
	// Blocks runs inner steps.
	Blocks Runner
	// Emit tells those who watch of a part of the output; it never waits.
	Emit func(delta string)
}

// Runner runs the steps within a step, each journalled by itself.
type Runner interface {
	// RunBlock runs steps one after the other. Their results are added to the
	// scope, which must not be shared with a block that runs at the same time.
	// iteration is empty for a block that runs once, else the number of the
	// iteration.
	RunBlock(ctx context.Context, b *Block, scope *template.Scope, iteration string) error
}

// Block is steps that run one after the other.
type Block struct{ Steps []*Step }

// Step is one step of a flow.
type Step struct {
	ID   string
	Type string
	// If is nil, or decides whether the step runs; one that does not has the
	// value null.
	If *template.Template
	// OnInterrupt says what becomes of a call that nobody knows the outcome of.
	OnInterrupt OnInterrupt
	// Timeout limits each attempt; 0: only the execution's limit counts.
	Timeout time.Duration
	// Retries is how often a call is repeated that has certainly not
	// succeeded.
	Retries int
	Program Program
	// Inner are the blocks within, for those who walk through a flow, and Most
	// is how often each of them may run in one run of the step: 1, or the
	// limit of a list.
	Inner []*Block
	Most  int64
}

// OnInterrupt says what becomes of a step whose call was interrupted.
type OnInterrupt string

// What may become of it.
const (
	// Fail: the execution fails with outcome_unknown.
	Fail OnInterrupt = "fail"
	// Retry: the call is repeated with the same derived key.
	Retry OnInterrupt = "retry"
)

// Result is what came of a step.
type Result struct {
	// Value is what steps.<id> is: JSON, as [template.Decode] reads it.
	Value map[string]any
	// Call is what was called; nil if nothing was.
	Call *Call
}

// Call describes a call to the outside, for traces and prices.
type Call struct {
	// Kind is "model" or "http".
	Kind string
	// Provider and Model are of model calls: the names in the flow.
	Provider, Model string
	// Usage is what the provider has counted, so far as it is known.
	Usage model.Usage
	// ProviderRequestID is the callee's own name for the request, if it said.
	ProviderRequestID string
	// Status is the HTTP status; 0 if there was no answer.
	Status int
	// Request and Response are what was said, as JSON; either may be nil.
	Request, Response json.RawMessage
}

// Outcome says what is known of a call that failed.
type Outcome uint8

// The outcomes.
const (
	// Refused: it was answered, and the answer is no success.
	Refused Outcome = iota
	// NotSent: it has not reached anybody.
	NotSent
	// Unknown: it was sent, and there was no answer that tells.
	Unknown
)

// Error is how a step fails.
type Error struct {
	// Code is model_error or step_failed.
	Code    api.Code
	Message string
	// Outcome is of steps that call.
	Outcome Outcome
	// Retryable says that the same call may succeed later. It does not say
	// that it may be repeated: that follows from Outcome.
	Retryable bool
	// After is how long to wait before that, if the callee has said so.
	After time.Duration
	// Call is what is known of the call; nil if nothing was called.
	Call *Call
	Err  error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Code) + ": " + e.Message + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failed returns an error that fails the step for good.
func Failed(err error, message string) *Error {
	return &Error{Code: api.CodeStepFailed, Message: message, Err: err}
}
