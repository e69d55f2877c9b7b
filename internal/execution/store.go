package execution

import (
	"context"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/flow"
)

// Store keeps executions and their journal. What is written together with
// credits is written along with an op of the ledger.
type Store interface {
	ReadStore
	QueueStore
	// Judge says what a request's key means; see release.Store.
	Judge(ctx context.Context, r idempotency.Request) (result idempotency.Result, fresh bool, err error)
	// Find returns a project's execution and whether there is one.
	Find(ctx context.Context, projectID, executionID string) (Execution, bool, error)
	// Journal returns what an execution has done, in the order of its start.
	Journal(ctx context.Context, number int64) ([]Step, []Call, error)

	// AlongCreation, AlongProgress and AlongEnd return what an op of the ledger
	// keeps along.
	AlongCreation(c *Creation) any
	AlongProgress(p *Progress) any
	AlongEnd(e *End) any
	// Forget empties up to limit outputs of steps, and up to as many requests and
	// responses of calls, of executions that have ended before a time, and
	// returns how many rows it has changed.
	Forget(ctx context.Context, before time.Time, limit int) (int, error)
}

// QueueStore says who runs which executions.
type QueueStore interface {
	// Claim makes queued executions those of an owner, the oldest first, and
	// with them those of others whose lease has ended, and returns up to limit
	// of them. After an error nobody knows what was claimed.
	Claim(ctx context.Context, c ClaimParams) ([]Execution, error)
	// Void queues what owners run that are gone: all but this one on a store
	// that only one process uses; none elsewhere, where leases end.
	Void(ctx context.Context, owner [16]byte) error
	// Renew renews the leases of an owner, and returns what it still runs.
	Renew(ctx context.Context, owner [16]byte, lease time.Duration) ([]Held, error)
	// Release queues an execution that its owner does not go on with. It does
	// nothing if the lease has passed on.
	Release(ctx context.Context, number int64, lease Lease) error
	// AskCancel notes that an execution is to end, unless it has.
	AskCancel(ctx context.Context, number int64, at time.Time) error
}

// Ledger runs ops in groups; see credit.Service.Do.
type Ledger interface {
	Do(ctx context.Context, op *credit.Op) error
}

// Flows finds versions; see flow.Service.
type Flows interface {
	Find(ctx context.Context, projectID, slug string, version int64) (*flow.Version, error)
	Load(ctx context.Context, flowID, version int64) (*flow.Version, error)
}

// Creation is an execution that is to be made. Its Number is filled in.
type Creation struct {
	Execution

	// Lease is how long the creator may run it, if it is created running.
	LeaseFor time.Duration
}

// Seen is an execution as it is locked in a transaction.
type Seen struct {
	// Found says that there is one.
	Found       bool
	Status      Status
	Lease       Lease
	CancelAsked bool
}

// Progress is rows of the journal of a run.
type Progress struct {
	Number int64
	// Steps and Calls are added, or replace what is there of their place and
	// their id.
	Steps []Step
	Calls []Call
	// ProjectID is of the calls.
	ProjectID string

	// Seen is filled in before the op is decided.
	Seen Seen
}

// End is how an execution ends. Its Charged and Unbilled are filled in when the
// op is decided.
type End struct {
	Progress

	// Execution has its last state.
	Execution Execution
}

// ClaimParams asks for executions to run.
type ClaimParams struct {
	Owner [16]byte
	// Lease is how long; 0 where leases end with their process.
	Lease time.Duration
	Now   time.Time
	Limit int
	// Except are projects of which nothing is claimed from the queue.
	Except []string
}

// Held is an execution that an owner runs.
type Held struct {
	Number      int64
	Epoch       int64
	CancelAsked bool
}
