package execution

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

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
	c.Held = c.Status != Failed && version.Program.Hold() > 0
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
	if c.Mode == Sync && c.Status == Queued && e.reserve(c.ProjectID) {
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
