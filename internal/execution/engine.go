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
	// TraceRetention is how long after the end of an execution it is kept what
	// its steps have given, and what was said in its calls; 0 is for ever.
	TraceRetention time.Duration
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
	// Finished is told of each execution that has ended, with its journal but
	// without what was said in calls; nil
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
	// draining ends, with errStopping, when no step may begin any more.
	draining context.Context //nolint:containedctx // the life of the engine, and not of a call
	drain    context.CancelCauseFunc

	mu sync.Mutex
	// free is the room there is. What is taken of it, done counts: by runs, and
	// by those who may begin one.
	free int
	done sync.WaitGroup
	// underWay are the runs by the id of their execution.
	underWay map[string]*run
	// perProject is how many of them there are of each project.
	perProject map[string]int
	// strays are what the store says that this process runs, and that it did
	// not when it last looked.
	strays map[Held]bool
}

// NewEngine returns an Engine that does nothing until [Engine.Run].
func NewEngine(p Params) *Engine {
	e := &Engine{
		params: p, hub: newHub(), wake: make(chan struct{}, 1), free: p.Slots, underWay: map[string]*run{},
		perProject: map[string]int{},
	}
	e.draining, e.drain = context.WithCancelCause(context.Background())
	return e
}

// Run claims and runs what is queued until the engine is drained, and keeps the
// leases until the context ends. It leaves what runs then to [Engine.Stop].
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
	e.mu.Lock() // so that nobody takes room that Stop does not know of
	defer e.mu.Unlock()
	e.drain(errStopping)
}

// Stop drains and waits for the steps that are under way, until the context
// ends; then they are cut. Run must have returned.
func (e *Engine) Stop(ctx context.Context) {
	e.Drain()
	ended := make(chan struct{})
	go func() {
		e.done.Wait()
		close(ended)
	}()
	renew := time.NewTicker(e.renewEvery())
	defer renew.Stop()
	for {
		select {
		case <-ended:
			return
		case <-renew.C:
			e.renew(ctx)
			continue
		case <-ctx.Done():
		}
		break
	}
	for _, r := range e.running() {
		r.cancel(errStopping)
	}
	<-ended
}

// isStopping says whether no step may begin.
func (e *Engine) isStopping() bool { return e.draining.Err() != nil }

// reserve keeps room for an execution of a project, if there is some for it.
func (e *Engine) reserve(projectID string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.free == 0 || e.isStopping() || e.free <= e.lastPart() && e.perProject[projectID] >= e.share() {
		return false
	}
	e.free--
	e.done.Add(1)
	return true
}

// reserveAll keeps room for as many executions as may be claimed, of all
// projects but those.
func (e *Engine) reserveAll() (n int, except []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isStopping() {
		return 0, nil
	}
	n = min(e.free-e.lastPart(), claimLimit)
	if n <= 0 {
		n = min(e.free, e.share(), claimLimit)
		for project, running := range e.perProject {
			if running >= e.share() {
				except = append(except, project)
			}
		}
	}
	e.free -= n
	e.done.Add(n)
	return n, except
}

// lastPart is how much of the room is only for projects that run less than
// their share, so that nobody is kept out by a project that runs a great deal
// for a long time.
func (e *Engine) lastPart() int { return e.params.Slots / 4 }

// share is how many executions a project may run in any case, if there is room.
func (e *Engine) share() int { return max(1, e.params.Slots/8) }

// claimLimit is how many executions are claimed at once.
const claimLimit = 64

func (e *Engine) giveBack(n int) {
	e.mu.Lock()
	e.free += n
	e.mu.Unlock()
	e.done.Add(-n)
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

// run runs an execution in the room that was kept for it.
func (e *Engine) run(x Execution, version *flow.Version) { e.start(newRun(e, x, version.Program)) }

func (e *Engine) start(r *run) {
	e.mu.Lock()
	e.underWay[r.x.ID] = r
	e.perProject[r.x.ProjectID]++
	e.mu.Unlock()
	id, project := r.x.ID, r.x.ProjectID
	go func() {
		r.do()
		e.mu.Lock()
		if e.underWay[id] == r { // it may have been claimed anew
			delete(e.underWay, id)
		}
		if e.perProject[project]--; e.perProject[project] == 0 {
			delete(e.perProject, project)
		}
		e.mu.Unlock()
		e.giveBack(1)
		e.Wake()
	}()
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
