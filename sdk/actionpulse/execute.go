package actionpulse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// The states of an execution.
const (
	StatusQueued    = "queued"
	StatusRunning   = "running"
	StatusSucceeded = "succeeded"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// Execute asks for a run of a flow.
//
// The server compares bodies byte by byte: a repeat with the same key must
// encode to the same text. Maps do, since their members are sorted; a struct
// does until its fields change.
type Execute struct {
	// Flow is the slug of the flow.
	Flow string
	// Version is which version to run; 0 means the pinned one, else the
	// latest. Name one where a repeat may come after a new version: the first
	// request decides, whatever is latest by then.
	Version int64
	// Customer is your own id of the customer whose credits pay; required by a
	// flow with a price.
	Customer string
	// Input encodes to the JSON object that the flow is given; nil means {}.
	Input any
	// Context encodes to the object that expressions see as context; nil means
	// none.
	Context any
}

// Executed is an execution that was asked for, by this call or before it.
type Executed struct {
	// Execution is as it was when it was last seen; its IdempotencyKey is the
	// key that was sent.
	api.Execution
	// Replayed says that the first answer was that to an earlier request with
	// the key, perhaps to an earlier attempt of this call: the flow ran once.
	Replayed bool
}

// The waits for an execution.
const (
	// longestWait is how long the server is asked to wait for the end at most.
	// It is well below the time after which usual proxies cut a silent
	// connection.
	longestWait = 30 * time.Second
	firstPoll   = time.Second
	lastPoll    = 10 * time.Second
)

// Execute runs a flow, once for each key (see [WithKey]), and waits until it
// has ended or ctx is done. An execution that has failed or was cancelled is
// returned together with an [*ExecutionError]. When ctx is done first, the
// execution is returned as it was last seen, or nil if no answer came; it goes
// on, and Execute with the same key and request waits for it again.
//
// It is refused, and the key stays free, with invalid_request, flow_not_found,
// customer_not_found and insufficient_credits ([Error.Balance]); and with
// idempotency_conflict ([Error.Conflict]) if the key names other work.
func (x *Executions) Execute(ctx context.Context, e Execute, options ...KeyOption) (*Executed, error) {
	c, err := x.request(e, "sync", options)
	if err != nil {
		return nil, err
	}
	c.prefer = x.link.preferredWait(ctx)
	done, wait, err := x.ask(ctx, c)
	for err == nil && !hasEnded(done.Status) {
		if err := x.link.sleep(ctx, wait); err != nil {
			return done, c.abandoned(err)
		}
		c.prefer = x.link.preferredWait(ctx)
		var now *Executed
		if now, wait, err = x.ask(ctx, c); now != nil {
			done.Execution = now.Execution
		} else if ctx.Err() != nil {
			return done, c.abandoned(context.Cause(ctx))
		}
	}
	if err != nil {
		return done, err
	}
	return done, failureOf(&done.Execution, nil)
}

// Start begins a run of a flow, once for each key, and returns without waiting
// for its end; see [Executions.Wait] and [Executions.Follow]. It is refused as
// Execute is. A repeat returns the execution as it is by then, with an
// [*ExecutionError] if it has failed. Start and Execute are different requests:
// a key that was used for one is a conflict for the other.
func (x *Executions) Start(ctx context.Context, e Execute, options ...KeyOption) (*Executed, error) {
	c, err := x.request(e, "async", options)
	if err != nil {
		return nil, err
	}
	begun, _, err := x.ask(ctx, c)
	if err != nil {
		return begun, err
	}
	return begun, failureOf(&begun.Execution, nil)
}

// Wait returns an execution when it has ended, together with an
// [*ExecutionError] unless it has succeeded. When ctx is done first, it is
// returned as it was last seen.
func (x *Executions) Wait(ctx context.Context, id string) (*api.Execution, error) {
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		now, err := x.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if hasEnded(now.Status) {
			return now, failureOf(now, nil)
		}
		if err := x.link.sleep(ctx, wait); err != nil {
			c := reads("getExecution", executionPath, id)
			return now, c.abandoned(err)
		}
	}
}

// preferredWait asks the server to answer while there is time left to hear it:
// half of what the context and the HTTP client leave.
func (l *link) preferredWait(ctx context.Context) string {
	wait := longestWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	if l.client.Timeout > 0 {
		wait = min(wait, l.client.Timeout/2)
	}
	return fmt.Sprintf("wait=%d", max(0, wait/time.Second))
}

func hasEnded(status string) bool { return status != StatusQueued && status != StatusRunning }

// request is the call that asks for an execution.
func (x *Executions) request(e Execute, mode string, options []KeyOption) (call, error) {
	key, err := x.link.keyOf(options, CheckKey)
	c := keyed("execute", "/v1/operations/execute", key)
	if err != nil {
		return c, c.refusedHere(err)
	}
	body := api.ExecuteRequest{Flow: e.Flow, Customer: api.OptionalText(e.Customer), ExecutionMode: &mode}
	if e.Version != 0 {
		body.Version = &e.Version
	}
	if body.Input, err = object("input", e.Input); err != nil {
		return c, c.refusedHere(err)
	}
	if body.Input == nil {
		body.Input = map[string]json.RawMessage{}
	}
	if body.Context, err = object("context", e.Context); err != nil {
		return c, c.refusedHere(err)
	}
	return c.with(body), nil
}

// object encodes a value that must be an object; nil is none.
func object(name string, value any) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be encoded: %w", name, err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("%s must be an object", name)
	}
	return members, nil
}

// ask sends the request once more and returns the execution with how long to
// wait before the next time. A first answer that tells of a failed run is an
// error on the wire; the execution is read then, so that a caller sees the
// same whichever answer it got.
func (x *Executions) ask(ctx context.Context, c call) (*Executed, time.Duration, error) {
	answer, r, err := exchange[api.ExecutionAnswer](ctx, x.link, c)
	if err != nil {
		return x.failed(ctx, err)
	}
	wait, ok := retry.ParseRetryAfter(r.header.Get("Retry-After"), x.link.now())
	if !ok || wait == 0 {
		wait = firstPoll
	}
	return &Executed{Execution: answer.Execution, Replayed: r.replayed()}, wait, nil
}

// failed returns the execution that an error tells of, if it does.
func (x *Executions) failed(ctx context.Context, err error) (*Executed, time.Duration, error) {
	refusal, ok := errors.AsType[*Error](err)
	if !ok || refusal.Details.ExecutionID == "" {
		return nil, 0, err
	}
	// What is known is enough if the rest cannot be read.
	now, errRead := x.Get(ctx, refusal.Details.ExecutionID)
	if errRead != nil {
		now = &api.Execution{
			ID: refusal.Details.ExecutionID, Status: StatusFailed, IdempotencyKey: refusal.IdempotencyKey,
			Error: &api.ExecutionError{Code: string(refusal.Code), Message: refusal.Message},
		}
	}
	return &Executed{Execution: *now}, 0, failureOf(now, refusal)
}

// abandoned is the error of a call whose caller has left while an execution
// was running.
func (c call) abandoned(cause error) *Error {
	e := c.failure("the execution has not ended")
	e.Err, e.Retryable, e.Attempts = cause, true, 1
	if c.kind != retry.Read {
		e.Applied = AppliedYes
	}
	return e
}
