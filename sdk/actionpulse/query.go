package actionpulse

import (
	"context"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// Queries ask questions about a project's events. Each sets Type itself. They
// change nothing and are repeated like other reads, but query_timeout is not:
// Details.Hint of the error says what to narrow first.
type Queries struct{ link *link }

// Trend asks for a value per interval.
func (q *Queries) Trend(ctx context.Context, projectID string, t api.TrendQuery) (*api.TrendAnswer, error) {
	t.Type = "trend"
	return question[api.TrendAnswer](ctx, q.link, projectID, t)
}

// Breakdown asks for a value per key.
func (q *Queries) Breakdown(ctx context.Context, projectID string, b api.BreakdownQuery) (*api.BreakdownAnswer, error) {
	b.Type = "breakdown"
	return question[api.BreakdownAnswer](ctx, q.link, projectID, b)
}

// Funnel asks how many persons went through steps in order.
func (q *Queries) Funnel(ctx context.Context, projectID string, f api.FunnelQuery) (*api.FunnelAnswer, error) {
	f.Type = "funnel"
	return question[api.FunnelAnswer](ctx, q.link, projectID, f)
}

// Retention asks how many of those who began came back.
func (q *Queries) Retention(ctx context.Context, projectID string, r api.RetentionQuery) (*api.RetentionAnswer, error) {
	r.Type = "retention"
	return question[api.RetentionAnswer](ctx, q.link, projectID, r)
}

// Events asks for a page of events, the latest first.
func (q *Queries) Events(ctx context.Context, projectID string, e api.EventsQuery) (*api.EventsAnswer, error) {
	e.Type = "events"
	return question[api.EventsAnswer](ctx, q.link, projectID, e)
}

// AllEvents yields every event from e.Cursor on, the latest first.
func (q *Queries) AllEvents(ctx context.Context, projectID string, e api.EventsQuery) iter.Seq2[api.StoredEvent, error] {
	return all(Page{Limit: e.Limit, Cursor: e.Cursor}, func(p Page) (*api.List[api.StoredEvent], error) {
		e := e
		e.Cursor = p.Cursor
		answer, err := q.Events(ctx, projectID, e)
		if err != nil {
			return nil, err
		}
		return &api.List[api.StoredEvent]{Items: answer.Items, NextCursor: answer.NextCursor}, nil
	})
}

func question[T any](ctx context.Context, l *link, projectID string, body any) (*T, error) {
	c := changes("query", http.MethodPost, projectPath+"/query", projectID).with(body)
	c.kind = retry.Read
	return fetch[T](ctx, l, c)
}
