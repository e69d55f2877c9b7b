package execution

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// policy has the rules for the keys of executions.
var policy = idempotency.Execution()

// KeyPolicy says which keys executions may have.
func KeyPolicy() *idempotency.Policy { return &policy }

// Service makes executions and tells of them.
type Service struct {
	params Params
	engine *Engine
	ended  ended
}

// NewService returns a Service whose executions are run by engine.
func NewService(engine *Engine) *Service {
	return &Service{params: engine.params, engine: engine, ended: newEnded()}
}

// Request is what a flow is to be run with.
type Request struct {
	Flow string
	// Version is 0 for the pinned one, else the latest.
	Version  int64
	Customer string
	// Input and Context are JSON; Context may be nil.
	Input, Context json.RawMessage
	Mode           Mode
}

// ExecuteParams is a request to run a flow.
type ExecuteParams struct {
	ProjectID string
	// Key has the form that the policy demands.
	Key string
	// Body is the body, decoded in transit but not yet read as JSON.
	Body []byte
	// Decode reads Body. It is called before it is known whether the key is
	// free, and its faults are only heard if it is.
	Decode func() (Request, error)
	// Free, if set, is called before an error is returned that leaves a key
	// free that was found so.
	Free func()
	// Read is called before a wait: Body is not looked at any more. It may be
	// nil.
	Read func()
	// Wait is how long to wait for the end; nil waits for ever, unless the
	// execution is asynchronous or the request is a repeat.
	Wait *time.Duration
}

func (p *ExecuteParams) free() {
	if p.Free != nil {
		p.Free()
	}
}

func (p *ExecuteParams) read() {
	if p.Read != nil {
		p.Read()
	}
}

// How long a repeat waits for the end of a synchronous execution.
const (
	DefaultWait = 30 * time.Second
	MaxWait     = 60 * time.Second
)

// Executed is what a request to run a flow came to.
type Executed struct {
	Replayed  bool
	Execution Execution
}

// Execute runs a flow once for each key. An execution that has failed is not
// an error of Execute. Errors: *idempotency.Error for a key that names other
// work; the faults of Decode; invalid_request, flow_not_found,
// customer_not_found, insufficient_credits; unavailable (with applied false or
// "unknown"). Every error but the first and "unknown" leaves the key free. What
// it has begun goes on when the context ends.
//
// Most keys are new, and whether one is, its claim decides: nothing is read of
// it before. Only a request that cannot be run looks at its key first, since a
// key that is taken says so whatever else is wrong.
func (s *Service) Execute(ctx context.Context, p ExecuteParams) (Executed, error) {
	r := idempotency.Request{Policy: &policy, Scope: p.ProjectID, Key: p.Key, Body: p.Body}
	digest := sha256.Sum256(p.Body)
	if x, ok := s.ended.find(r.Ref(), digest); ok {
		s.params.Tally.Repeat(r.Ref())
		return Executed{Replayed: true, Execution: x}, nil
	}
	seen := s.ended.forgotten.Load()
	done, err := s.execute(ctx, &p, r)
	if err == nil && done.Execution.Status.Ended() {
		s.ended.keep(r.Ref(), told{digest, done.Execution}, seen)
	}
	return done, err
}

func (s *Service) execute(ctx context.Context, p *ExecuteParams, r idempotency.Request) (Executed, error) {
	c, err := s.prepare(ctx, p, r)
	if err != nil {
		return s.look(ctx, p, r, err)
	}
	defer c.watch.stop()
	for {
		err := c.run(ctx)
		switch _, judged := errors.AsType[*idempotency.Error](err); {
		case err == nil && c.op.Outcome.Key.Replayed:
			return s.replay(ctx, p, r, c.op.Outcome.Key.Record.Resource.ID)
		case err == nil:
			return s.first(ctx, p, c)
		case judged:
			return Executed{}, s.refused(r, err)
		case credit.NotRun(err):
			done, err := s.look(ctx, p, r, err)
			if !errors.Is(err, credit.ErrTaken) {
				return done, err
			} // by a request that came before, and was refused meanwhile
		default:
			if refusal := c.op.Outcome.Err; refusal != nil && errors.Is(err, refusal) { // its claim was undone
				p.free()
			}
			return Executed{}, err
		}
	}
}

// look answers a request that was not run for a reason: if its key is taken as
// that says, and otherwise with the reason.
func (s *Service) look(ctx context.Context, p *ExecuteParams, r idempotency.Request, reason error) (Executed, error) {
	result, fresh, err := s.params.Store.Judge(ctx, r)
	switch {
	case err != nil:
		return Executed{}, s.refused(r, err)
	case !fresh:
		return s.replay(ctx, p, r, result.Record.Resource.ID)
	default:
		p.free()
		return Executed{}, reason
	}
}

// first answers the request that has made the execution.
func (s *Service) first(ctx context.Context, p *ExecuteParams, c *creation) (Executed, error) {
	if c.Mode == Async || c.Status.Ended() {
		return Executed{Execution: c.Execution}, nil
	}
	p.read()
	x, err := s.await(ctx, c.watch, c.Execution, p.Wait)
	return Executed{Execution: x}, err
}

// replay answers a repeat with the execution as it is, after a while at most.
func (s *Service) replay(ctx context.Context, p *ExecuteParams, r idempotency.Request, executionID string) (Executed, error) {
	s.params.Tally.Repeat(r.Ref())
	watch := s.engine.hub.watch(executionID)
	defer watch.stop()
	x, err := s.Get(ctx, p.ProjectID, executionID)
	if err != nil {
		return Executed{}, fmt.Errorf("read the execution of a key: %w", err)
	}
	if x.Mode == Sync && !x.Status.Ended() {
		wait := DefaultWait
		if p.Wait != nil {
			wait = min(*p.Wait, MaxWait)
		}
		p.read()
		if x, err = s.await(ctx, watch, x, &wait); err != nil {
			return Executed{}, err
		}
	}
	return Executed{Replayed: true, Execution: x}, nil
}

// refused counts conflicts.
func (s *Service) refused(r idempotency.Request, err error) error {
	if errors.Is(err, &idempotency.Error{Problem: idempotency.Mismatch}) {
		s.params.Tally.Conflict(r.Ref())
	}
	return err
}

// Get returns an execution. Faults: not_found.
func (s *Service) Get(ctx context.Context, projectID, executionID string) (Execution, error) {
	x, found, err := s.params.Store.Find(ctx, projectID, executionID)
	if err != nil {
		return Execution{}, fmt.Errorf("find an execution: %w", err)
	}
	if !found {
		return Execution{}, fault.New(api.CodeNotFound, "there is no such execution")
	}
	return x, nil
}

// Status implements work.Status.
func (s *Service) Status(ctx context.Context, projectID, executionID string) (string, error) {
	x, err := s.Get(ctx, projectID, executionID)
	return string(x.Status), err
}

// lookAgain is how often an execution is read that may be run elsewhere.
const lookAgain = time.Second

// await returns an execution when it has ended, or as it is when the wait is
// over, the context ends or the server stops before that. x is as it was after the watch
// had begun.
func (s *Service) await(ctx context.Context, w *watch, x Execution, wait *time.Duration) (Execution, error) {
	var over <-chan time.Time
	if wait != nil {
		timer := time.NewTimer(*wait)
		defer timer.Stop()
		over = timer.C
	}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	stopping := s.engine.draining.Done()
	for waiting := true; waiting; {
		select {
		case end := <-w.ended:
			return end, nil
		case <-again.C:
		case <-over:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-stopping:
			// What runs here ends soon, or is queued again; the rest does not.
			stopping, waiting = nil, s.engine.runs(x.ID)
		}
		now, err := s.Get(context.WithoutCancel(ctx), x.ProjectID, x.ID)
		if err != nil || now.Status.Ended() {
			return now, err
		}
		x = now
	}
	return x, nil
}

// writable returns unavailable when nothing may be written.
func (s *Service) writable() error {
	if err := s.params.Guard(); err != nil {
		return fault.Wrap(api.CodeUnavailable, err, "nothing can be written now").With("applied", false)
	}
	return nil
}
