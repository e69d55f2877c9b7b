package openai

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/actionpulse/actionpulse/internal/model"
)

// gate keeps calls within the limits of a provider: those it was set up with,
// for which a call waits, and those the provider has spoken of, for which it
// is told when to come again.
type gate struct {
	now   func() time.Time
	rate  *rate.Limiter
	slots chan struct{} // nil: no limit

	mu sync.Mutex
	// until is when the provider may be called again.
	until time.Time
}

func newGate(c model.Connection, now func() time.Time) *gate {
	g := &gate{now: now, rate: rate.NewLimiter(rate.Inf, 1)}
	if c.RequestsPerMinute > 0 {
		// A second's worth may come at once: what providers count, they count
		// in windows that are much shorter than a minute.
		g.rate = rate.NewLimiter(rate.Limit(float64(c.RequestsPerMinute)/60), int(max(1, c.RequestsPerMinute/60)))
	}
	if c.MaxConcurrent > 0 {
		g.slots = make(chan struct{}, c.MaxConcurrent)
	}
	return g
}

// enter waits for the limits, and returns what must be called when the call
// has ended. It refuses with a [*model.Error] that is NotSent: when the
// provider asks for patience, or the context ends, or would end, before it is
// the call's turn.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	if err := g.patience(); err != nil {
		return nil, err
	}
	if g.slots != nil {
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, notNow("max_concurrent", ctx.Err())
		}
	}
	leave = func() {
		if g.slots != nil {
			<-g.slots
		}
	}
	if err = g.rate.Wait(ctx); err != nil {
		err = notNow("requests_per_minute", err)
	} else {
		err = g.patience() // somebody may have been told so meanwhile
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

func notNow(limit string, err error) *model.Error {
	return &model.Error{
		Outcome: model.NotSent, Retryable: true, Err: err,
		Message: fmt.Sprintf("the time was over before it was the call's turn: the provider's limit %s", limit),
	}
}

// patience refuses while the provider is not to be called.
func (g *gate) patience() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.until.Sub(g.now())
	if left <= 0 {
		return nil
	}
	return &model.Error{
		Outcome: model.NotSent, Retryable: true, After: left,
		Message: "the provider has asked not to be called for a while",
	}
}

// close keeps calls from the provider for a while.
func (g *gate) close(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := g.now().Add(d); until.After(g.until) {
		g.until = until
	}
}
