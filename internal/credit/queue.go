package credit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Ledger runs groups of ops.
type Ledger interface {
	// Apply does a group in one transaction and fills in the outcomes. When it
	// returns an error, nothing is known of the outcomes: the fault unavailable
	// says by its detail applied whether anything may have been committed.
	Apply(ctx context.Context, g Group) error
}

// Limits of the queue.
const (
	// maxGroup is how many ops share a transaction.
	maxGroup = 64
	// maxQueue is how many ops may wait.
	maxQueue = 20_000
	// groupAttempts is how often a group is begun whose COMMIT was not
	// confirmed.
	groupAttempts = 3
	// queueAgain is the Retry-After when the queue is full.
	queueAgain = time.Second
)

// queue groups ops that arrive together into transactions: while one group is
// being committed the next gathers, and nobody waits when nothing is under
// way. Projects take turns, ops of one project go in order, and of the ops
// with one key only the first enters a group; the others follow when it is
// done.
type queue struct {
	ledger Ledger
	env    env
	log    *slog.Logger

	mu      sync.Mutex
	arrived *sync.Cond
	// projects hold what waits, in the order of their turns.
	projects []*project
	waiting  int
	// busy are the keys of the groups under way.
	busy   map[idempotency.Ref]bool
	closed bool
	done   sync.WaitGroup
}

// project is what waits of one project.
type project struct {
	id  string
	ops []*pending
}

// pending is an op that somebody waits for.
type pending struct {
	op   *Op
	done chan error
}

// newQueue starts workers, each of which runs one group at a time. On SQLite
// there is one writer, and more workers only wait for each other.
func newQueue(p *Params) *queue {
	q := &queue{ledger: p.Store, env: env{p.Clock, p.Random}, log: p.Log, busy: map[idempotency.Ref]bool{}}
	q.arrived = sync.NewCond(&q.mu)
	for range max(p.Workers, 1) {
		q.done.Go(q.work)
	}
	return q
}

// do runs an op and returns when its group is committed. The error is not the
// op's, which is in its outcome: unavailable (with applied false or "unknown").
// A caller that leaves does not stop an op that waits.
func (q *queue) do(ctx context.Context, op *Op) error {
	p := &pending{op: op, done: make(chan error, 1)}
	if err := q.add(p); err != nil {
		return err
	}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return fault.Wrap(api.CodeUnavailable, context.Cause(ctx), "the caller has left").With("applied", "unknown")
	}
}

func (q *queue) add(p *pending) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.waiting >= maxQueue {
		return fault.New(api.CodeUnavailable, "too many movements are under way").With("applied", false).After(queueAgain)
	}
	q.waiting++
	for _, one := range q.projects {
		if one.id == p.op.ProjectID {
			one.ops = append(one.ops, p)
			q.arrived.Signal()
			return nil
		}
	}
	q.projects = append(q.projects, &project{id: p.op.ProjectID, ops: []*pending{p}})
	q.arrived.Signal()
	return nil
}

// work runs groups until the queue is closed and empty.
func (q *queue) work() {
	for {
		group := q.next()
		if group == nil {
			return
		}
		q.run(group)
		q.finish(group)
	}
}

// next waits for ops and takes the next group; nil when there will be none.
func (q *queue) next() []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if group := q.take(); len(group) > 0 {
			return group
		}
		if q.closed && q.waiting == 0 {
			q.arrived.Broadcast()
			return nil
		}
		q.arrived.Wait()
	}
}

// take takes one op of each project in turn until the group is full or nothing
// is left that may go.
func (q *queue) take() []*pending {
	var group []*pending
	for took := true; took && len(group) < maxGroup; {
		took = false
		for _, one := range q.projects {
			if len(group) == maxGroup {
				break
			}
			if p := q.takeOf(one); p != nil {
				group, took = append(group, p), true
			}
		}
	}
	q.turn()
	q.waiting -= len(group)
	return group
}

// takeOf takes the first op of a project whose key is not under way.
func (q *queue) takeOf(one *project) *pending {
	for i, p := range one.ops {
		key := p.op.Key
		if key != nil && q.busy[key.Ref()] {
			continue
		}
		if key != nil {
			q.busy[key.Ref()] = true
		}
		one.ops = append(one.ops[:i:i], one.ops[i+1:]...)
		return p
	}
	return nil
}

// turn drops projects that have nothing left and lets another begin next time.
func (q *queue) turn() {
	left := q.projects[:0]
	for _, one := range q.projects {
		if len(one.ops) > 0 {
			left = append(left, one)
		}
	}
	if len(left) > 1 {
		left = append(left[1:], left[0])
	}
	clear(q.projects[len(left):])
	q.projects = left
}

// run applies a group and tells those who wait. If the group fails for a
// reason that may be one op's, the ops are run one by one.
func (q *queue) run(group []*pending) {
	ops := make([]*Op, len(group))
	for i, p := range group {
		ops[i] = p.op
	}
	err := q.apply(ops)
	if err != nil && len(group) > 1 && fault.CodeOf(err) != api.CodeUnavailable {
		q.log.Error("a group of movements failed; its members are tried alone", "members", len(group), "err", err)
		for _, p := range group {
			p.done <- q.apply([]*Op{p.op})
		}
		return
	}
	for _, p := range group {
		p.done <- err
	}
}

// apply runs a group, again if it is unknown whether it was committed: every
// op then either finds what it has made, or does the work anew.
func (q *queue) apply(ops []*Op) error {
	for attempt := 1; ; attempt++ {
		err := q.ledger.Apply(context.Background(), Group{Ops: ops, Now: q.env.now(), NewID: q.env.newID})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Details["applied"] != "unknown" || attempt == groupAttempts {
			return err
		}
	}
}

// finish lets the ops go on that waited for the group's keys.
func (q *queue) finish(group []*pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range group {
		if p.op.Key != nil {
			delete(q.busy, p.op.Key.Ref())
		}
	}
	q.arrived.Broadcast()
}

// close refuses new ops and returns when those that wait are done.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.arrived.Broadcast()
	q.mu.Unlock()
	q.done.Wait()
}
