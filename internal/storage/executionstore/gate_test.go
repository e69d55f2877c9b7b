package executionstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// harm is what a gate does to an op.
type harm int

const (
	none harm = iota
	// refuse does not do it, and says so.
	refuse
	// before and after say that nobody knows: it was not done, or it was.
	before
	after
)

// gate stands before the ledger and the store of a server, which it harms, or
// cuts off from them as if the process had died.
type gate struct {
	execution.Store

	ledger execution.Ledger

	mu sync.Mutex
	// harms says what is done to the n-th op of runs, from 1; nil: nothing.
	harms func(n int) harm
	n     int
	dead  bool
	// dies is closed when it is dead.
	dies chan struct{}
}

// harm returns a change of a server that puts the gate before its stores.
func (g *gate) guard(p *execution.Params) {
	g.Store, g.ledger, g.dies = p.Store, p.Ledger, make(chan struct{})
	p.Store, p.Ledger = g, g
}

var errGate = errors.New("the gate is closed")

func closed(applied any) error {
	return fault.Wrap(api.CodeUnavailable, errGate, "the gate is closed").With("applied", applied)
}

// die cuts the server off.
func (g *gate) die() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.dead {
		g.dead = true
		close(g.dies)
	}
}

// next says what is done to the next op.
func (g *gate) next(op *credit.Op) (harm, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if op.Key == nil {
		g.n++
		if g.harms != nil {
			return g.harms(g.n), g.dead
		}
	}
	return none, g.dead
}

// Do implements execution.Ledger.
func (g *gate) Do(ctx context.Context, op *credit.Op) error {
	what, dead := g.next(op)
	switch {
	case dead:
		return closed("unknown")
	case what == refuse:
		return closed(false)
	case what == before:
		return closed("unknown")
	}
	err := g.ledger.Do(ctx, op)
	if what == after && err == nil {
		return closed("unknown")
	}
	return err
}

func (g *gate) isDead() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dead
}

// Claim implements execution.Store.
func (g *gate) Claim(ctx context.Context, c execution.ClaimParams) ([]execution.Execution, error) {
	if g.isDead() {
		return nil, errGate
	}
	return g.Store.Claim(ctx, c)
}

// Release implements execution.Store.
func (g *gate) Release(ctx context.Context, number int64, lease execution.Lease) error {
	if g.isDead() {
		return errGate
	}
	return g.Store.Release(ctx, number, lease)
}

// bury starts another server in place of one that has died.
func (b *bench) bury(t *testing.T, dead *server, slots int) *server {
	t.Helper()
	dead.cut()
	b.expire(t)
	return b.serve(t, slots)
}

// Do implements execution.Ledger.
func (f *forgetful) Do(ctx context.Context, op *credit.Op) error {
	err := f.Ledger.Do(ctx, op)
	if op.Key != nil && !f.done && err == nil {
		f.done = true
		return closed("unknown")
	}
	return err
}
