package credit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// commit is how long a group takes.
const commit = time.Millisecond

// plan is a store whose COMMITs take a while and fail as planned. It remembers
// which keys are taken, and which op took them.
type plan struct {
	credit.Store

	mu sync.Mutex
	// groups are the keys of the groups that were run, in their order.
	groups [][]string
	taken  map[idempotency.Ref]*credit.Op
	// looks counts the keys that were looked at.
	looks int
	// fail says what becomes of a group, whether it is committed and what is
	// heard of it; nil commits all.
	fail func(n int, g credit.Group) (committed bool, err error)
	// refuse says which ops are refused.
	refuse func(op *credit.Op) error
}

// Judge implements credit.Store.
func (p *plan) Judge(_ context.Context, r idempotency.Request) (idempotency.Result, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	op, ok := p.taken[r.Ref()]
	if !ok {
		return idempotency.Result{}, true, nil
	}
	result, err := judged(&r, op)
	return result, false, err
}

// judged is what a taken key means.
func judged(r *idempotency.Request, by *credit.Op) (idempotency.Result, error) {
	if string(by.Key.Body) != string(r.Body) {
		return idempotency.Result{}, &idempotency.Error{Problem: idempotency.Mismatch}
	}
	return idempotency.Result{Replayed: true, Answer: &idempotency.Answer{Body: []byte(by.Key.Key)}}, nil
}

// Apply implements credit.Store.
func (p *plan) Apply(_ context.Context, g credit.Group) error {
	p.mu.Lock()
	n := len(p.groups)
	var keys []string
	for _, op := range g.Ops {
		keys = append(keys, op.Key.Key)
		if slices.Contains(keys[:len(keys)-1], op.Key.Key) {
			panic("a group has a key twice: " + op.Key.Key)
		}
	}
	p.groups = append(p.groups, keys)
	p.mu.Unlock()
	<-time.After(commit)
	p.mu.Lock()
	defer p.mu.Unlock()
	committed, err := true, error(nil)
	if p.fail != nil {
		committed, err = p.fail(n, g)
	}
	for _, op := range g.Ops {
		op.Outcome = p.outcome(op, committed)
	}
	return err
}

// outcome is what becomes of an op.
func (p *plan) outcome(op *credit.Op, committed bool) credit.Outcome {
	if by, ok := p.taken[op.Key.Ref()]; ok {
		result, err := judged(op.Key, by)
		result.Replayed = by != op
		return credit.Outcome{Key: result, Err: err}
	}
	if p.refuse != nil {
		if err := p.refuse(op); err != nil {
			return credit.Outcome{Err: err}
		}
	}
	if committed {
		p.taken[op.Key.Ref()] = op
	}
	return credit.Outcome{Key: idempotency.Result{Answer: &idempotency.Answer{Body: []byte(op.Key.Key)}}}
}

// ran is how many groups were begun.
func (p *plan) ran() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.groups)
}

// keys are the keys of a group that has ended.
func (p *plan) keys(group int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groups[group]
}

// service is a service on a plan.
func (p *plan) service(workers int) *credit.Service {
	p.taken = map[idempotency.Ref]*credit.Op{}
	return credit.NewService(credit.Params{
		Store: p, Workers: workers, KeepAnswers: time.Hour, Guard: func() error { return nil },
		Tally: idempotency.NewTally(func(context.Context, []idempotency.Count) error { return nil }),
		Clock: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
}

func move(ctx context.Context, s *credit.Service, project, key, body string) (credit.Moved, error) {
	return s.Move(ctx, credit.MoveParams{
		ProjectID: project, Customer: "ada", Kind: credit.Topup, Key: key, Body: []byte(body),
		Decode: func() (credit.Move, error) { return credit.Move{CreditType: "main", Amount: 1}, nil },
	})
}

func unknown() error {
	return fault.New(api.CodeUnavailable, "the database did not confirm the change").With("applied", "unknown")
}

func unreachable() error {
	return fault.New(api.CodeUnavailable, "the database cannot be reached").With("applied", false)
}

// applied is what a caller hears of a change.
func applied(err error) any {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	return f.Details["applied"]
}

// inBubble runs a test with a service that is closed at its end.
func inBubble(t *testing.T, p *plan, workers int, test func(t *testing.T, s *credit.Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := p.service(workers)
		defer s.Close()
		test(t, s)
	})
}
