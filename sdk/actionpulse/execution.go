package actionpulse

import (
	"context"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// Executions are runs of flows.
type Executions struct{ link *link }

const executionPath = "/v1/executions/{execution_id}"

// ListExecutions says which executions are asked for; what is empty does not
// narrow.
type ListExecutions struct {
	Page
	IdempotencyKey string
	Flow           string
	Customer       string
	// Status is queued, running, succeeded, failed or cancelled.
	Status string
}

// List returns a page of executions, latest first.
func (x *Executions) List(ctx context.Context, p ListExecutions) (*api.List[api.Execution], error) {
	q := p.Page.query()
	setText(q, "idempotency_key", p.IdempotencyKey)
	setText(q, "flow", p.Flow)
	setText(q, "customer", p.Customer)
	setText(q, "status", p.Status)
	return list[api.Execution](ctx, x.link, reads("listExecutions", "/v1/executions").ask(q))
}

// All yields every execution from p on, latest first.
func (x *Executions) All(ctx context.Context, p ListExecutions) iter.Seq2[api.Execution, error] {
	return all(p.Page, func(page Page) (*api.List[api.Execution], error) {
		p := p
		p.Page = page
		return x.List(ctx, p)
	})
}

// Get returns an execution as it is now, whether it runs, has succeeded or has
// failed; not_found if there is none.
func (x *Executions) Get(ctx context.Context, id string) (*api.Execution, error) {
	return x.one(ctx, reads("getExecution", executionPath, id))
}

// Trace returns what an execution has done so far.
func (x *Executions) Trace(ctx context.Context, id string) (*api.Trace, error) {
	return fetch[api.Trace](ctx, x.link, reads("getTrace", executionPath+"/trace", id))
}

// Cancel asks an execution to end, and returns it as it is now, which may be
// before the end. One that has ended stays as it is.
func (x *Executions) Cancel(ctx context.Context, id string) (*api.Execution, error) {
	return x.one(ctx, changes("cancelExecution", http.MethodPost, executionPath+"/cancel", id))
}

func (x *Executions) one(ctx context.Context, c call) (*api.Execution, error) {
	answer, err := fetch[api.ExecutionAnswer](ctx, x.link, c)
	if err != nil {
		return nil, err
	}
	return &answer.Execution, nil
}
