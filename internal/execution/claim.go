package execution

import (
	"context"
	"errors"
	"time"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// void queues what processes have left that are gone.
func (e *Engine) void(ctx context.Context) {
	for delay := time.Second; ; {
		err := e.params.Store.Void(ctx, e.params.Owner)
		if err == nil || ctx.Err() != nil {
			return
		}
		e.params.Log.Error("executions that were interrupted are not queued again yet", "error", err)
		if !pause(ctx, delay) {
			return
		}
	}
}

// claim claims as much from the queue as there is room for.
func (e *Engine) claim(ctx context.Context) {
	for e.params.Guard() == nil {
		room, except := e.reserveAll()
		if room == 0 {
			return
		}
		claimed, err := e.params.Store.Claim(ctx, ClaimParams{
			Owner: e.params.Owner, Lease: e.params.LeaseFor, Now: e.params.now(), Limit: room, Except: except,
		})
		if err != nil { // what was claimed all the same is a stray
			claimed = nil
			if ctx.Err() == nil {
				e.params.Log.Warn("no executions were claimed", "error", err)
			}
		}
		loaded := true
		for i := range claimed {
			loaded = e.load(ctx, &claimed[i]) && loaded
		}
		e.giveBack(room - len(claimed))
		if len(claimed) < room || !loaded {
			return
		}
	}
}

// load runs an execution that was claimed, or gives it back.
func (e *Engine) load(ctx context.Context, x *Execution) bool {
	version, err := e.params.Flows.Load(ctx, x.FlowID, x.Version)
	if err == nil {
		e.run(*x, version)
		return true
	}
	if _, ok := errors.AsType[*step.Issues](err); ok { // an older program has published it
		e.params.Log.Error("a flow cannot be run any more", "flow", x.Flow, "version", x.Version, "execution", x.ID, "error", err)
		r := newRun(e, *x, &flow.Program{Steps: &step.Block{}, Limits: flow.Limits{Timeout: flow.MaxTimeout}})
		r.broken = step.Failed(err, "the definition of the flow is not valid any more: publish it anew")
		e.start(r)
		return true
	}
	e.params.Log.Error("the flow of an execution cannot be read", "execution", x.ID, "error", err)
	if err := e.params.Store.Release(context.WithoutCancel(ctx), x.Number, x.Lease); err != nil {
		e.params.Log.Error("an execution was not given back to the queue yet", "execution", x.ID, "error", err)
	}
	e.giveBack(1)
	return false
}

// lookForWishes is how often wishes to cancel are looked for, and strays, where
// there are no leases to renew.
const lookForWishes = 5 * time.Second

// renewEvery is how often leases are renewed, and wishes to cancel seen.
func (e *Engine) renewEvery() time.Duration {
	if e.params.LeaseFor == 0 {
		return lookForWishes
	}
	return e.params.LeaseFor / 3
}

// renew renews the leases, cancels what somebody wants to end, ends the runs
// whose lease has passed on, and gives back what does not run.
func (e *Engine) renew(ctx context.Context) {
	before := e.running()
	held, err := e.params.Store.Renew(ctx, e.params.Owner, e.params.LeaseFor)
	if err != nil {
		if ctx.Err() == nil {
			e.params.Log.Warn("the leases of executions were not renewed", "error", err)
		}
		return
	}
	byNumber := make(map[int64]Held, len(held))
	for _, one := range held {
		byNumber[one.Number] = one
	}
	for _, r := range before {
		one, ok := byNumber[r.number]
		switch {
		case !ok || one.Epoch != r.lease.Epoch:
			r.cancel(errLost)
		case one.CancelAsked:
			r.cancel(errCancelled)
		}
	}
	e.giveBackStrays(ctx, held)
}

// giveBackStrays queues executions that the store says this process runs, and
// that it does not: their claim, or their creation, was not confirmed. Who
// begins such a run all the same, only later, cannot write any more.
func (e *Engine) giveBackStrays(ctx context.Context, held []Held) {
	running := map[int64]bool{}
	for _, r := range e.running() {
		running[r.number] = true
	}
	strays := map[Held]bool{}
	for _, one := range held {
		one.CancelAsked = false
		switch {
		case running[one.Number]:
		case !e.strays[one]:
			strays[one] = true // it may be about to begin, or have ended just now
		default:
			if err := e.params.Store.Release(ctx, one.Number, Lease{Owner: e.params.Owner, Epoch: one.Epoch}); err != nil && ctx.Err() == nil {
				e.params.Log.Warn("an execution that does not run was not given back to the queue yet", "error", err)
				strays[one] = true
			}
			e.Wake()
		}
	}
	e.strays = strays
}
