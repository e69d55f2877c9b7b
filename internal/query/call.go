package query

import "context"

// call is one request being answered.
type call struct {
	*Service
	project Project
	body    []byte
	// What had been decided before the store was asked.
	position   uint64
	windowTime int64
}

// storedThrough returns the time before which everything acknowledged is in
// the answer. If the store held all that had been decided before it was asked,
// that is the time read with the decision; else the time of its last record,
// since records are stored in the order of their times.
func (c *call) storedThrough(state State) string { return milliText(c.through(state)) }

// through is storedThrough in milliseconds since 1970.
func (c *call) through(state State) int64 {
	if state.Position >= c.position {
		return c.windowTime
	}
	return state.Received
}

func runTrend(ctx context.Context, c call) (any, error) {
	var r trendRequest
	if err := decode(c.body, &r); err != nil {
		return nil, err
	}
	q, buckets, err := r.trend()
	if err != nil {
		return nil, err
	}
	if q.Project, err = c.project(ctx); err != nil {
		return nil, err
	}
	points, state, err := c.store.Trend(ctx, q)
	if err != nil {
		return nil, err
	}
	return newTrendAnswer(q, buckets, points, c.storedThrough(state)), nil
}

func runBreakdown(ctx context.Context, c call) (any, error) {
	var r breakdownRequest
	if err := decode(c.body, &r); err != nil {
		return nil, err
	}
	q, err := r.breakdown()
	if err != nil {
		return nil, err
	}
	if q.Project, err = c.project(ctx); err != nil {
		return nil, err
	}
	groups, state, err := c.store.Breakdown(ctx, q)
	if err != nil {
		return nil, err
	}
	return newBreakdownAnswer(groups, c.storedThrough(state)), nil
}

func runFunnel(ctx context.Context, c call) (any, error) {
	var r funnelRequest
	if err := decode(c.body, &r); err != nil {
		return nil, err
	}
	q, err := r.funnel()
	if err != nil {
		return nil, err
	}
	if q.Project, err = c.project(ctx); err != nil {
		return nil, err
	}
	persons, state, err := c.store.Funnel(ctx, q)
	if err != nil {
		return nil, err
	}
	return newFunnelAnswer(q, persons, c.storedThrough(state)), nil
}

func runRetention(ctx context.Context, c call) (any, error) {
	var r retentionRequest
	if err := decode(c.body, &r); err != nil {
		return nil, err
	}
	q, buckets, err := r.retention()
	if err != nil {
		return nil, err
	}
	if q.Project, err = c.project(ctx); err != nil {
		return nil, err
	}
	cells, state, err := c.store.Retention(ctx, q)
	if err != nil {
		return nil, err
	}
	return newRetentionAnswer(q, buckets, cells, c.storedThrough(state)), nil
}

func runEvents(ctx context.Context, c call) (any, error) {
	var r eventsRequest
	if err := decode(c.body, &r); err != nil {
		return nil, err
	}
	q, err := r.events()
	if err != nil {
		return nil, err
	}
	if q.Project, err = c.project(ctx); err != nil {
		return nil, err
	}
	events, state, err := c.store.Events(ctx, q)
	if err != nil {
		return nil, err
	}
	return newEventsAnswer(q, events, c.storedThrough(state)), nil
}
