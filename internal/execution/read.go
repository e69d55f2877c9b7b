package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/model"
)

// ReadStore reads executions and what they have done.
type ReadStore interface {
	// List returns executions of a project, the latest first, without what they
	// were given: as many as there are within the limit, or so many that their
	// outputs are not too much for one page, but at least one. more says that
	// there are further ones.
	List(ctx context.Context, q ListQuery) (list []Execution, more bool, err error)
	// Operations returns operations of a project, the latest first.
	Operations(ctx context.Context, q OperationQuery) ([]Operation, error)
	// Costs returns what executions of a project have used.
	Costs(ctx context.Context, q CostQuery) ([]Cost, error)
}

// ListQuery asks for executions.
type ListQuery struct {
	ProjectID string
	// Key, Flow, Customer and Status are empty for any.
	Key, Flow, Customer string
	Status              Status
	// Before is the id to go on from; empty begins with the latest.
	Before string
	Limit  int
}

// Operation is a request that ran a flow, or a model call that it made.
type Operation struct {
	ID          string
	ExecutionID string
	// Type is "execute" or "model".
	Type string
	// Step and Model are of model calls.
	Step, Model string
	Status      string
	Usage       model.Usage
	Charged     credit.Amount
	Attempt     int
	StartedAt   time.Time
	FinishedAt  time.Time
}

// OperationQuery asks for operations.
type OperationQuery struct {
	ProjectID string
	// ExecutionID is empty for any.
	ExecutionID string
	// Before is the id to go on from; empty begins with the latest.
	Before string
	Limit  int
}

// CostQuery asks for what was used by executions that have ended between two
// times, in groups.
type CostQuery struct {
	ProjectID string
	From, To  time.Time
	By        CostGroup
}

// CostGroup says what a group has in common, beside its credit type.
type CostGroup struct{ Customer, Flow, Model, Day bool }

// Cost is what a group has used. The members of the group that were not asked
// for are empty.
type Cost struct {
	// CreditType is in which credits was paid; empty for what had no price.
	CreditType            string
	Customer, Flow, Model string
	// Day is its beginning, UTC.
	Day time.Time
	// Calls are those of models, counted only by model. Charged is then what
	// they cost by the price rules; otherwise it is what was taken.
	Executions, Calls int64
	Usage             model.Usage
	Charged           credit.Amount
}

// Trace is an execution and what it has done.
type Trace struct {
	Execution Execution
	Steps     []Step
	Calls     []Call

	// block is the flow's.
	block *step.Block
}

// NewTrace returns the trace of an execution of a program.
func NewTrace(x *Execution, steps []Step, calls []Call, p *flow.Program) *Trace {
	return &Trace{Execution: *x, Steps: steps, Calls: calls, block: p.Steps}
}

// Trace returns what an execution has done so far. Faults: not_found.
func (s *Service) Trace(ctx context.Context, projectID, executionID string) (Trace, error) {
	x, err := s.Get(ctx, projectID, executionID)
	if err != nil {
		return Trace{}, err
	}
	t := Trace{Execution: x}
	t.Steps, t.Calls, err = s.params.Store.Journal(ctx, x.Number)
	if err != nil {
		return Trace{}, fmt.Errorf("read the journal of an execution: %w", err)
	}
	version, err := s.params.Flows.Load(ctx, x.FlowID, x.Version)
	if _, ok := errors.AsType[*step.Issues](err); ok { // nobody can say any more what is not to be shown
		return Trace{Execution: x}, nil
	}
	if err != nil {
		return Trace{}, fmt.Errorf("read the flow of an execution: %w", err)
	}
	t.block = version.Program.Steps
	t.redact(version.Program)
	return t, nil
}

// trace is what the run has done.
func (r *run) trace() *Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &Trace{Execution: r.x, block: r.program.Steps}
	for _, s := range r.journal {
		t.Steps = append(t.Steps, *s)
	}
	for _, id := range r.begun {
		t.Calls = append(t.Calls, *r.calls[id])
	}
	return t
}

// List returns a page of executions, the latest first, and whether there are
// more. A page ends before its limit when its outputs are large.
func (s *Service) List(ctx context.Context, q ListQuery) (list []Execution, more bool, err error) {
	if list, more, err = s.params.Store.List(ctx, q); err != nil {
		return nil, false, fmt.Errorf("list executions: %w", err)
	}
	return list, more, nil
}

// Operations returns the requests that ran flows and the model calls they made,
// the latest first.
func (s *Service) Operations(ctx context.Context, q OperationQuery) ([]Operation, error) {
	list, err := s.params.Store.Operations(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list operations: %w", err)
	}
	return list, nil
}

// Costs returns what was used, in groups.
func (s *Service) Costs(ctx context.Context, q CostQuery) ([]Cost, error) {
	list, err := s.params.Store.Costs(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("sum up what executions have used: %w", err)
	}
	return list, nil
}
