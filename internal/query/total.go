package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

// Metric is what a trend counts, without its range of time and its intervals.
type Metric struct {
	Measure Measure
	// Events are the names that count; nil means all events.
	Events []string
	Where  []Filter
}

// metricRequest is the JSON form of a Metric.
type metricRequest struct {
	Measure *string        `json:"measure"`
	Event   jsontext.Value `json:"event"`
	Where   []whereClause  `json:"where"`
}

// ParseMetric reads the members measure, event and where as a trend has them.
// It returns invalid_json, and validation_failed with details.field.
func ParseMetric(body []byte) (Metric, error) {
	if err := jsonsyntax.Check(body); err != nil {
		return Metric{}, err
	}
	var r metricRequest
	if err := decode(body, &r); err != nil {
		return Metric{}, err
	}
	m := Metric{}
	var err error
	if m.Measure, err = measureOf(r.Measure); err != nil {
		return Metric{}, err
	}
	if m.Events, err = eventNames(r.Event); err != nil {
		return Metric{}, err
	}
	m.Where, err = filters("where", r.Where)
	return m, err
}

// Window is a half-open range of the events' time, in milliseconds since 1970.
type Window struct{ From, To int64 }

// Totals asks for one value of a metric for each window: what the events in it
// count to, all names together, and each person once.
type Totals struct {
	Project uint32
	Metric
	// Windows are not empty, and in order without overlapping.
	Windows []Window
}

// Totals answers a question that was not asked in JSON. Everything
// acknowledged before stored is in the values. It returns query_timeout past
// the time budget.
func (s *Service) Totals(ctx context.Context, q Totals) (values []int64, stored time.Time, err error) {
	bounded, cancel := context.WithTimeoutCause(ctx, s.budget, errBudget)
	defer cancel()
	c := call{Service: s}
	c.position, c.windowTime = s.progress.Decided()
	values, state, err := s.store.Totals(bounded, q)
	switch {
	case err == nil:
		return values, time.UnixMilli(c.through(state)).UTC(), nil
	case ctx.Err() == nil && errors.Is(context.Cause(bounded), errBudget):
		return nil, time.Time{}, fault.Wrap(api.CodeQueryTimeout, err, "the query took longer than %s", s.budget).With("hint", hints["trend"])
	default:
		return nil, time.Time{}, fmt.Errorf("query: %w", err)
	}
}
