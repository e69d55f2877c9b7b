// Package execution owns the runs of flows: an execution is made once for each
// Idempotency-Key, together with the hold of what it may cost; it is a row of
// a queue; one process at a time runs it; what it has done is journalled; and
// it ends in one way, which settles the hold.
//
//	queued ──▶ running ──▶ succeeded | failed | cancelled
//	  ▲  │        │
//	  │  └────────┼──────▶ cancelled
//	  └───────────┘ its owner has stopped, or its lease has ended
//
// Invariants:
//   - key, execution and hold are made in one transaction, or none of them is;
//   - every write of a run names the lease it was claimed with, and is refused
//     once another has claimed the execution;
//   - a step whose result is in the journal never runs again; a call that was
//     journalled as sent and has no result runs again only if the step says so;
//   - an execution ends and its hold is settled in one transaction, whatever
//     has ended it, and nothing else ends that hold;
//   - what is charged is what the journal says was used, by the price rules,
//     and never more than was held.
package execution

import (
	"encoding/json"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/model"
)

// Kind is what the key of an execution names.
const Kind = "execution"

// Status is the state of an execution.
type Status string

// The states. From the last three there is no way.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Ended says whether nothing more will happen.
func (s Status) Ended() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Mode says whether the caller waits.
type Mode string

// The modes.
const (
	Sync  Mode = "sync"
	Async Mode = "async"
)

// Execution is one run of a version of a flow.
type Execution struct {
	// Number orders executions; given by the store.
	Number    int64
	ID        string
	ProjectID string
	FlowID    int64
	// Flow is its slug.
	Flow    string
	Version int64
	// Customer is the caller's id of who pays, empty if nobody does.
	Customer string
	// Held says that an amount was set aside for it when it was made.
	Held   bool
	Key    string
	Mode   Mode
	Status Status
	// Input, Context and Output are JSON; Context may be nil, Output is nil
	// unless it has succeeded.
	Input, Context, Output json.RawMessage
	// Failure says why it has failed; nil otherwise.
	Failure *Failure
	// Charged is what was taken, Unbilled what was used beyond what was held.
	Charged, Unbilled credit.Amount
	Usage             model.Usage
	// Lease is the latest: it is in force while the execution runs.
	Lease Lease
	// CancelAsked says that somebody wants it to end.
	CancelAsked bool
	CreatedAt   time.Time
	// StartedAt and FinishedAt are zero before that.
	StartedAt, FinishedAt time.Time
}

// Failure says why an execution or a step has failed.
type Failure struct { //nolint:errname // it is what is stored, and read as one too
	Code    api.Code
	Message string
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Lease is the right to run an execution: of one process, for one claim.
type Lease struct {
	Owner [16]byte
	// Epoch moves on with each claim.
	Epoch int64
}

// StepState is what the journal says of a step.
type StepState string

// The states of a step. started is written before a call is sent, and by a
// step that waits; others have only an end.
const (
	StepStarted  StepState = "started"
	StepFinished StepState = "finished"
	StepSkipped  StepState = "skipped"
	StepFailed   StepState = "failed"
)

// Place names one run of a step within an execution.
type Place struct {
	Step string
	// Iteration is empty, or the numbers of the iterations it is in: 3, 3.0.
	Iteration string
}

// Step is a row of the journal.
type Step struct {
	Place

	Type    string
	State   StepState
	Attempt int
	// Output is its value as JSON, once it is finished.
	Output json.RawMessage
	// Price is what the run of the step costs, without its calls.
	Price      credit.Amount
	Failure    *Failure
	StartedAt  time.Time
	FinishedAt time.Time
}

// CallStatus is what is known of a call.
type CallStatus string

// What may be known of a call.
const (
	CallRunning   CallStatus = "running"
	CallSucceeded CallStatus = "succeeded"
	CallFailed    CallStatus = "failed"
	CallUnknown   CallStatus = "unknown"
)

// Call is one attempt to call a model or a service.
type Call struct {
	Place

	ID          string
	ExecutionID string
	Attempt     int
	// Kind is "model" or "http".
	Kind   string
	Status CallStatus
	// Provider and Model are of model calls.
	Provider, Model string
	// HTTPStatus is 0 if there was no answer.
	HTTPStatus int
	Usage      model.Usage
	Price      credit.Amount
	// DerivedKey is the Idempotency-Key that was sent.
	DerivedKey string
	// ProviderRequestID is the callee's own name for the request.
	ProviderRequestID string
	// Request and Response are what was said, while it is kept.
	Request, Response json.RawMessage
	// Message says why it has failed.
	Message    string
	StartedAt  time.Time
	FinishedAt time.Time
}
