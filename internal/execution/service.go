package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// policy has the rules for the keys of executions.
var policy = idempotency.Execution()

// KeyPolicy says which keys executions may have.
func KeyPolicy() *idempotency.Policy { return &policy }

// Service makes executions and tells of them.
type Service struct {
	params Params
	engine *Engine
}

// NewService returns a Service whose executions are run by engine.
func NewService(engine *Engine) *Service { return &Service{params: engine.params, engine: engine} }

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
	// Decode reads Body. It is only called when the key is free.
	Decode func() (Request, error)
	// Read is called before a wait: Body is not looked at any more. It may be
	// nil.
	Read func()
	// Wait is how long to wait for the end; nil waits for ever, unless the
	// execution is asynchronous or the request is a repeat.
	Wait *time.Duration
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
func (s *Service) Execute(ctx context.Context, p ExecuteParams) (Executed, error) {
	r := idempotency.Request{Policy: &policy, Scope: p.ProjectID, Key: p.Key, Body: p.Body}
	var c *creation
	for {
		result, fresh, err := s.params.Store.Judge(ctx, r)
		if err != nil {
			return Executed{}, s.refused(r, err)
		}
		if !fresh {
			return s.replay(ctx, &p, r, result.Record.Resource.ID)
		}
		if c == nil {
			if c, err = s.prepare(ctx, &p, r); err != nil {
				return Executed{}, err
			}
			defer c.watch.stop()
		}
		err = c.run(ctx)
		if errors.Is(err, credit.ErrTaken) {
			continue // by a request that came before this one: see what it was
		}
		if err != nil {
			return Executed{}, s.refused(r, err)
		}
		if c.op.Outcome.Key.Replayed {
			return s.replay(ctx, &p, r, c.op.Outcome.Key.Record.Resource.ID)
		}
		return s.first(ctx, &p, c)
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

// creation is an execution that is being made.
type creation struct {
	Creation

	service *Service
	version *flow.Version
	op      *credit.Op
	watch   *watch
	// slot says that the engine has room, which is kept for it.
	slot bool
}

// prepare reads and checks a request whose key is free.
func (s *Service) prepare(ctx context.Context, p *ExecuteParams, r idempotency.Request) (*creation, error) {
	in, err := p.Decode()
	if err != nil {
		return nil, err
	}
	version, err := s.params.Flows.Find(ctx, p.ProjectID, in.Flow, in.Version)
	if err != nil {
		return nil, fmt.Errorf("find the flow of an execution: %w", err)
	}
	if in.Customer == "" && version.Program.Hold() > 0 {
		return nil, fault.New(api.CodeInvalidRequest, "the flow has a price: say which customer pays for it").With("field", "customer")
	}
	if in.Customer != "" {
		if err := credit.ValidateCustomer(in.Customer); err != nil {
			return nil, err
		}
	}
	if err := s.writable(); err != nil {
		return nil, err
	}
	executionID, err := s.params.newID()
	if err != nil {
		return nil, err
	}
	c := &creation{service: s, version: version, Creation: Creation{LeaseFor: s.params.LeaseFor, Execution: Execution{
		ID: executionID, ProjectID: p.ProjectID, FlowID: version.FlowID, Flow: version.Slug, Version: version.Number,
		Customer: in.Customer, Key: p.Key, Mode: in.Mode, Status: Queued, Input: in.Input, Context: in.Context,
	}}}
	if err := checkInput(version.Program, in.Input); err != nil {
		c.Status, c.Failure = Failed, &Failure{Code: api.CodeInvalidFlowInput, Message: err.Error()}
	}
	if c.op, err = s.op(c, r); err != nil {
		return nil, err
	}
	c.watch = s.engine.hub.watch(c.ID)
	return c, nil
}

// checkInput says why a flow cannot be run with an input.
func checkInput(p *flow.Program, input json.RawMessage) error {
	value, err := template.Decode(input)
	if err != nil {
		return fmt.Errorf("the input cannot be read: %w", err)
	}
	return p.CheckInput(value)
}

// op makes key, execution and hold.
func (s *Service) op(c *creation, r idempotency.Request) (*credit.Op, error) {
	op := &credit.Op{
		ProjectID: c.ProjectID, Key: &r, Along: s.params.Store.AlongCreation(&c.Creation),
		Answer: func(*credit.Outcome) (idempotency.Answer, error) {
			return idempotency.Answer{Status: 200, Resource: idempotency.Resource{Kind: Kind, ID: c.ID}}, nil
		},
		Decide: func(st *credit.State) (credit.Effect, error) {
			c.CreatedAt = st.Now
			switch c.Status { //nolint:exhaustive // a queued one has neither time
			case Failed:
				c.FinishedAt = st.Now
			case Running:
				c.StartedAt = st.Now
			}
			amount := c.version.Program.Hold()
			switch {
			case amount == 0:
				return credit.Effect{}, nil
			case c.Status == Failed:
				return credit.Effect{}, credit.CanHold(st, amount)
			default:
				return credit.PlaceExecution(st, c.ID, amount)
			}
		},
	}
	if c.Customer != "" {
		op.Subject = credit.Subject{Customer: c.Customer}
	}
	if c.version.Program.Hold() > 0 {
		op.Subject.CreditType, op.Subject.HoldID = c.version.Program.Price.CreditType, c.ID
	}
	return op, s.params.token(op)
}

// run makes the execution, and has it run. A caller that leaves does not stop
// it.
func (c *creation) run(ctx context.Context) error {
	e := c.service.engine
	if c.Mode == Sync && c.Status == Queued && e.reserve() {
		c.slot, c.Status, c.Lease = true, Running, Lease{Owner: e.params.Owner, Epoch: 1}
	}
	err := c.service.params.Ledger.Do(context.WithoutCancel(ctx), c.op)
	made := err == nil && !c.op.Outcome.Key.Replayed
	switch {
	case c.slot && made:
		e.run(c.Execution, c.version)
	case c.slot:
		e.giveBack(1)
		e.Wake() // for what was queued meanwhile
		c.slot, c.Status, c.Lease = false, Queued, Lease{}
	case made && c.Status == Queued:
		e.queued(ctx)
	case made && e.params.Finished != nil: // its input was not valid
		e.params.Finished(NewTrace(&c.Execution, nil, nil, c.version.Program))
	}
	if err != nil {
		return fmt.Errorf("create an execution: %w", err)
	}
	return nil
}

// writable returns unavailable when nothing may be written.
func (s *Service) writable() error {
	if err := s.params.Guard(); err != nil {
		return fault.Wrap(api.CodeUnavailable, err, "nothing can be written now").With("applied", false)
	}
	return nil
}
