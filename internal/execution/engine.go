package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/id"
)

// Params configures an [Engine] and its [Service].
type Params struct {
	Store  Store
	Ledger Ledger
	Flows  Flows
	// Owner names this process: new with each start.
	Owner [16]byte
	// Slots is how many executions run at once.
	Slots int
	// LeaseFor is how long a lease is in force that is not renewed; 0 on a
	// store that only this process uses, where leases end with it.
	LeaseFor time.Duration
	// Guard returns nil, or why nothing may be written now.
	Guard func() error
	// Tally counts repeats and conflicts.
	Tally *idempotency.Tally
	Clock func() time.Time
	// Random is where ids come from: crypto/rand.Reader.
	Random io.Reader
	// Announce tells other processes that there is something to run; nil if
	// there are none.
	Announce func(ctx context.Context) error
	// Finished is told of each execution that has ended, with its journal; nil
	// if nobody wants to know. It must not wait.
	Finished func(t *Trace)
	Log      *slog.Logger
}

func (p *Params) now() time.Time { return p.Clock().UTC().Truncate(time.Microsecond) }

func (p *Params) newID() (string, error) { return id.New(p.Clock(), p.Random) }

// token names an op as the owner of its key.
func (p *Params) token(op *credit.Op) error {
	if _, err := io.ReadFull(p.Random, op.Token[:]); err != nil {
		return fmt.Errorf("make a token: %w", err)
	}
	return nil
}

// Why runs end before their time.
var (
	errCancelled = errors.New("the execution was cancelled")
	errTimeout   = errors.New("the execution has taken too long")
	errStopping  = errors.New("the server stops")
	errLost      = errors.New("the lease of the execution has passed on")
	// errUnwritten is a journal that the store does not take.
	errUnwritten = errors.New("what a run has done cannot be written")
	// errStepTimeout ends an attempt, and not the run.
	errStepTimeout = errors.New("the step has taken too long")
)

// lookForWork is how often the queue is looked at when nobody says that there
// is something in it.
const lookForWork = time.Second

// Engine runs executions: those that the service hands to it, and those that
// it claims from the queue.
type Engine struct {
	params Params
	hub    *hub
	wake   chan struct{}
	// stopping is closed when no step may begin any more.
	stopping chan struct{}

	mu   sync.Mutex
	free int
	// underWay are the runs by the id of their execution.
	underWay map[string]*run
	done     sync.WaitGroup
}

// NewEngine returns an Engine that does nothing until [Engine.Run].
func NewEngine(p Params) *Engine {
	return &Engine{
		params: p, hub: newHub(), wake: make(chan struct{}, 1), stopping: make(chan struct{}), free: p.Slots,
		underWay: map[string]*run{},
	}
}

// Run claims and runs what is queued until the context ends or the engine is
// drained. It leaves what runs to [Engine.Stop].
func (e *Engine) Run(ctx context.Context) {
	e.void(ctx)
	look := time.NewTicker(lookForWork)
	defer look.Stop()
	renew := time.NewTicker(e.renewEvery())
	defer renew.Stop()
	for {
		e.claim(ctx)
		select {
		case <-e.wake:
		case <-look.C:
		case <-renew.C:
			e.renew(ctx)
		case <-e.stopping:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Wake says that there may be something in the queue.
func (e *Engine) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Drain lets no step begin any more: runs end after the steps that are under
// way, and what has not ended is queued again. It does not wait.
func (e *Engine) Drain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.isStopping() {
		close(e.stopping)
	}
}

// Stop drains and waits for the steps that are under way, until the context
// ends; then they are cut. Run must have returned, and nobody may call the
// service any more.
func (e *Engine) Stop(ctx context.Context) {
	e.Drain()
	ended := make(chan struct{})
	go func() {
		e.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	e.mu.Lock()
	for _, r := range e.underWay {
		r.cancel(errStopping)
	}
	e.mu.Unlock()
	<-ended
}

// isStopping says whether no step may begin.
func (e *Engine) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}

// reserve keeps room for an execution, if there is some.
func (e *Engine) reserve() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.free == 0 || e.isStopping() {
		return false
	}
	e.free--
	return true
}

// reserveAll keeps all the room there is.
func (e *Engine) reserveAll() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isStopping() {
		return 0
	}
	n := min(e.free, claimLimit)
	e.free -= n
	return n
}

// claimLimit is how many executions are claimed at once.
const claimLimit = 64

func (e *Engine) giveBack(n int) {
	e.mu.Lock()
	e.free += n
	e.mu.Unlock()
}

// queued sees to an execution that was put into the queue.
func (e *Engine) queued(ctx context.Context) {
	e.Wake()
	e.mu.Lock()
	full := e.free == 0
	e.mu.Unlock()
	if !full || e.params.Announce == nil {
		return
	}
	if err := e.params.Announce(context.WithoutCancel(ctx)); err != nil {
		e.params.Log.Warn("other servers were not told of an execution; they will find it", "error", err)
	}
}

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
	for {
		room := e.reserveAll()
		if room == 0 {
			return
		}
		claimed, err := e.params.Store.Claim(ctx, ClaimParams{
			Owner: e.params.Owner, Lease: e.params.LeaseFor, Now: e.params.now(), Limit: room,
		})
		if err != nil && ctx.Err() == nil {
			e.params.Log.Warn("no executions were claimed", "error", err)
		}
		for i := range claimed {
			e.load(ctx, &claimed[i])
		}
		e.giveBack(room - len(claimed))
		if len(claimed) < room {
			return
		}
	}
}

// load runs an execution that was claimed.
func (e *Engine) load(ctx context.Context, x *Execution) {
	version, err := e.params.Flows.Load(ctx, x.FlowID, x.Version)
	if err == nil {
		e.run(*x, version)
		return
	}
	e.params.Log.Error("the flow of an execution cannot be read", "execution", x.ID, "error", err)
	if err := e.params.Store.Release(context.WithoutCancel(ctx), x.Number, x.Lease); err != nil {
		e.params.Log.Error("an execution was not given back to the queue", "execution", x.ID, "error", err)
	}
	e.giveBack(1)
}

// run runs an execution in the room that was kept for it.
func (e *Engine) run(x Execution, version *flow.Version) {
	r := newRun(e, x, version)
	e.mu.Lock()
	e.underWay[x.ID] = r
	e.done.Add(1)
	e.mu.Unlock()
	go func() {
		defer e.done.Done()
		r.do()
		e.mu.Lock()
		delete(e.underWay, x.ID)
		e.free++
		e.mu.Unlock()
		e.Wake()
	}()
}

// renewEvery is how often leases are renewed, and wishes to cancel seen.
func (e *Engine) renewEvery() time.Duration {
	if e.params.LeaseFor == 0 {
		return time.Minute
	}
	return e.params.LeaseFor / 3
}

// renew renews the leases, cancels what somebody wants to end, and ends the
// runs whose lease has passed on.
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
		one, ok := byNumber[r.x.Number]
		switch {
		case !ok || one.Epoch != r.x.Lease.Epoch:
			r.cancel(errLost)
		case one.CancelAsked:
			r.cancel(errCancelled)
		}
	}
}

// runs says whether an execution runs here.
func (e *Engine) runs(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.underWay[id] != nil
}

// cancel cuts an execution that runs here.
func (e *Engine) cancel(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.underWay[id]; r != nil {
		r.cancel(errCancelled)
	}
}

func (e *Engine) running() []*run {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*run, 0, len(e.underWay))
	for _, r := range e.underWay {
		all = append(all, r)
	}
	return all
}

// pause waits, and says whether it was not cut short.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
