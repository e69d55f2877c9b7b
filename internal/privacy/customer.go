package privacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// CustomerReader reads what is exported of customers; the methods are those of
// credit.Customers, credit.Books and execution.Service.
type CustomerReader struct {
	Customers interface {
		Get(ctx context.Context, projectID, customer string) (credit.Customer, error)
	}
	Books interface {
		Export(ctx context.Context, q credit.MovementQuery) (next func(context.Context) ([]credit.Movement, error), err error)
		Holds(ctx context.Context, p credit.ListParams, state credit.HoldState) ([]credit.StoredHold, error)
	}
	Executions interface {
		List(ctx context.Context, q execution.ListQuery) (list []execution.Execution, more bool, err error)
		Trace(ctx context.Context, projectID, executionID string) (execution.Trace, error)
	}
}

// readPage is how many rows of a kind are read at a time.
const readPage = 100

// ExportCustomer emits a customer with the balances, then all movements and
// holds, the oldest movement first, then all executions with what they were
// given, have given and have said, as traces show it.
func (r CustomerReader) ExportCustomer(ctx context.Context, projectID, customer string, emit Emit) error {
	c, err := r.Customers.Get(ctx, projectID, customer)
	if errors.Is(err, fault.New(api.CodeCustomerNotFound, "")) {
		return nil
	}
	if err != nil {
		return err
	}
	out := api.Customer{Customer: c.ID, Metadata: c.Metadata, Balances: map[string]api.Balance{}, CreatedAt: api.TimeText(c.CreatedAt)}
	for name, b := range c.Balances {
		out.Balances[name] = api.Balance{Posted: b.Posted.String(), Held: b.Held.String(), Available: b.Available().String()}
	}
	if err := emit("customer", out); err != nil {
		return err
	}
	for _, part := range []func(context.Context, string, string, Emit) error{r.movements, r.holds, r.executions} {
		if err := part(ctx, projectID, customer, emit); err != nil {
			return fmt.Errorf("export a customer: %w", err)
		}
	}
	return nil
}

func (r CustomerReader) movements(ctx context.Context, projectID, customer string, emit Emit) error {
	next, err := r.Books.Export(ctx, credit.MovementQuery{ProjectID: projectID, Customer: customer})
	if err != nil {
		return err
	}
	for {
		page, err := next(ctx)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := emit("movement", page[i].Wire()); err != nil {
				return err
			}
		}
	}
}

func (r CustomerReader) holds(ctx context.Context, projectID, customer string, emit Emit) error {
	p := credit.ListParams{ProjectID: projectID, Customer: customer, Limit: readPage}
	for {
		page, err := r.Books.Holds(ctx, p, "")
		if err != nil {
			return err
		}
		for i := range page {
			if err := emit("hold", holdOf(&page[i])); err != nil {
				return err
			}
		}
		if len(page) < readPage {
			return nil
		}
		p.Cursor = page[len(page)-1].Number
	}
}

func holdOf(h *credit.StoredHold) api.Hold {
	return api.Hold{
		ID: h.ID, Customer: h.Customer, CreditType: h.CreditType, Amount: h.Amount.String(), State: string(h.State),
		Captured: h.Captured.String(), Movement: api.OptionalText(h.Movement), Reason: api.OptionalText(h.Note.Reason), Metadata: h.Note.Metadata,
		ExpiresAt: api.OptionalTime(h.ExpiresAt), CreatedAt: api.TimeText(h.CreatedAt), ClosedAt: api.OptionalTime(h.ClosedAt),
	}
}

func (r CustomerReader) executions(ctx context.Context, projectID, customer string, emit Emit) error {
	q := execution.ListQuery{ProjectID: projectID, Customer: customer, Limit: readPage}
	for more := true; more; {
		var page []execution.Execution
		var err error
		if page, more, err = r.Executions.List(ctx, q); err != nil {
			return err
		}
		for i := range page {
			t, err := r.Executions.Trace(ctx, projectID, page[i].ID)
			if err != nil {
				return err
			}
			if err := emit("execution", executionOf(&t)); err != nil {
				return err
			}
			q.Before = page[i].ID
		}
	}
	return nil
}

// exportedExecution is an execution in an archive.
type exportedExecution struct {
	ID             string              `json:"id"`
	Flow           string              `json:"flow"`
	Version        int64               `json:"version"`
	Customer       string              `json:"customer"`
	Status         string              `json:"status"`
	Input          json.RawMessage     `json:"input"`
	Context        json.RawMessage     `json:"context"`
	Output         json.RawMessage     `json:"output"`
	Error          *api.ExecutionError `json:"error"`
	Charged        string              `json:"charged"`
	IdempotencyKey string              `json:"idempotency_key"`
	CreatedAt      string              `json:"created_at"`
	FinishedAt     *string             `json:"finished_at"`
	Steps          []exportedStep      `json:"steps"`
	Calls          []exportedCall      `json:"calls"`
}

// exportedStep is what a step has given.
type exportedStep struct {
	Step      string          `json:"step"`
	Iteration string          `json:"iteration"`
	Status    string          `json:"status"`
	Output    json.RawMessage `json:"output"`
	StartedAt string          `json:"started_at"`
}

// exportedCall is what was said in a call.
type exportedCall struct {
	Step      string          `json:"step"`
	Iteration string          `json:"iteration"`
	Kind      string          `json:"kind"`
	Model     *string         `json:"model"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
	StartedAt string          `json:"started_at"`
}

func executionOf(t *execution.Trace) exportedExecution {
	x := &t.Execution
	out := exportedExecution{
		ID: x.ID, Flow: x.Flow, Version: x.Version, Customer: x.Customer, Status: string(x.Status),
		Input: orNull(x.Input), Context: orNull(x.Context), Output: orNull(x.Output), Charged: x.Charged.String(), IdempotencyKey: x.Key,
		CreatedAt: api.TimeText(x.CreatedAt), FinishedAt: api.OptionalTime(x.FinishedAt), Steps: []exportedStep{}, Calls: []exportedCall{},
	}
	if x.Failure != nil {
		out.Error = &api.ExecutionError{Code: string(x.Failure.Code), Message: x.Failure.Message}
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		out.Steps = append(out.Steps, exportedStep{s.Step, s.Iteration, string(s.State), orNull(s.Output), api.TimeText(s.StartedAt)})
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		out.Calls = append(out.Calls, exportedCall{
			c.Step, c.Iteration, c.Kind, api.OptionalText(c.Model), orNull(c.Request), orNull(c.Response), api.TimeText(c.StartedAt),
		})
	}
	return out
}

func orNull(text json.RawMessage) json.RawMessage {
	if len(text) == 0 {
		return json.RawMessage("null")
	}
	return text
}
