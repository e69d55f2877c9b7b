package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

// DefaultBudget is how long a query may take.
const DefaultBudget = 10 * time.Second

// Options say how a service works. Store and Progress are required.
type Options struct {
	Store    Store
	Progress Progress
	// Budget is how long a query may take; 0 means DefaultBudget.
	Budget time.Duration
}

// Service answers requests in their JSON form.
type Service struct {
	store    Store
	progress Progress
	budget   time.Duration
}

// New returns a service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Progress == nil || o.Budget < 0 {
		return nil, errors.New("query: a store, the progress and a budget that is not negative are required")
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	return &Service{store: o.Store, progress: o.Progress, budget: o.Budget}, nil
}

// errBudget is the cause with which a query that takes too long is cancelled.
var errBudget = errors.New("query exceeded its time budget")

// Project looks up the number of the project that a request is about.
type Project func(ctx context.Context) (uint32, error)

// Run answers the request in body about one project; the answer can be
// marshalled as JSON. The project is looked up once the request is known to be
// valid, and a fault of the look-up is returned as it is.
//
// It returns invalid_json for a body that is not JSON, repeats a name or nests
// deeper than 64; validation_failed with details.field for a request that
// cannot be answered; query_timeout with details.hint past the time budget.
// When ctx ends first, the error wraps its cause and has no code.
func (s *Service) Run(ctx context.Context, project Project, body []byte) (any, error) {
	if err := jsonsyntax.Check(body); err != nil {
		return nil, err
	}
	name, err := typeOf(body)
	if err != nil {
		return nil, err
	}
	run, ok := runners[name]
	if !ok {
		return nil, errType()
	}
	bounded, cancel := context.WithTimeoutCause(ctx, s.budget, errBudget)
	defer cancel()
	c := call{Service: s, project: project, body: body}
	c.position, c.windowTime = s.progress.Decided()
	answer, err := run(bounded, c)
	if err == nil {
		return answer, nil
	}
	if ctx.Err() == nil && errors.Is(context.Cause(bounded), errBudget) && !isFault(err) {
		return nil, fault.Wrap(api.CodeQueryTimeout, err, "the query took longer than %s", s.budget).With("hint", hints[name])
	}
	if isFault(err) {
		return nil, err
	}
	return nil, fmt.Errorf("query: %w", err)
}

func isFault(err error) bool {
	_, ok := errors.AsType[*fault.Error](err)
	return ok
}

// hints say what to narrow, by type of request.
var hints = map[string]string{
	"trend":     "shorten from–to, name fewer events, or take measure count instead of persons",
	"breakdown": "shorten from–to, name one event, or take measure count instead of persons",
	"funnel":    "shorten from–to, or take rarer events or narrower filters for the first steps",
	"retention": "shorten from–to, or take rarer events",
	"events":    "give from and to, an event name or a person",
}

var runners = map[string]func(context.Context, call) (any, error){
	"trend":     runTrend,
	"breakdown": runBreakdown,
	"funnel":    runFunnel,
	"retention": runRetention,
	"events":    runEvents,
}
