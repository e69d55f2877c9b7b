package actionpulse

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Operations are the requests that ran flows and the model calls that they
// made.
type Operations struct{ link *link }

// ListOperations says which operations are asked for.
type ListOperations struct {
	Page
	// ExecutionID narrows to one execution.
	ExecutionID string
}

// CostsOf says which executions are summed up.
type CostsOf struct {
	// From and To bound when they have ended; To is not included. The zero
	// times mean 30 days before To, and now.
	From, To time.Time
	// By groups them: any of customer, flow, model and day.
	By []string
}

// List returns a page of operations, latest first.
func (o *Operations) List(ctx context.Context, p ListOperations) (*api.List[api.Operation], error) {
	q := p.Page.query()
	setText(q, "execution_id", p.ExecutionID)
	return list[api.Operation](ctx, o.link, reads("listOperations", "/v1/operations").ask(q))
}

// All yields every operation from p on.
func (o *Operations) All(ctx context.Context, p ListOperations) iter.Seq2[api.Operation, error] {
	return all(p.Page, func(page Page) (*api.List[api.Operation], error) {
		p := p
		p.Page = page
		return o.List(ctx, p)
	})
}

// Costs sums up what executions have used.
func (o *Operations) Costs(ctx context.Context, of CostsOf) (*api.Costs, error) {
	q := url.Values{}
	setTime(q, "from", of.From)
	setTime(q, "to", of.To)
	setText(q, "by", strings.Join(of.By, ","))
	return fetch[api.Costs](ctx, o.link, reads("listCosts", "/v1/operations/costs").ask(q))
}
