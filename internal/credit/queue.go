package credit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
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
	// queueAgain is the Retry-After when the queue is full.
	queueAgain = time.Second
)

// ErrTaken is returned for an op that has waited for another with its key: the
// key is taken now, and what it means can be read.
var ErrTaken = errors.New("the key was taken while the op waited")

// NotRun says whether an error of the queue, also of [Service.Do], means that the op was not run at
// all, so that its key may be looked at.
func NotRun(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return errors.Is(err, ErrTaken) || ok && f.Details["applied"] == false
}

// queue groups ops that arrive together into transactions: while one group is
// being committed the next gathers, and nobody waits when nothing is under
// way. Projects take turns, ops of one project go in order, and of the ops
// with one key only the first enters a group. The others stand in line until
// it is done: if it was refused the next one goes, if it has taken the key
// they need not be written at all.
type queue struct {
	ledger Ledger
	env    env
	log    *slog.Logger

	mu      sync.Mutex
	arrived *sync.Cond
	// projects are those of which something may go, in the order of their
	// turns; byID are the same.
	projects []*project
	byID     map[string]*project
	// lines has, for each key whose op may go or is under way, the ops that
	// stand in line behind it.
	lines map[idempotency.Ref][]*pending
	// ready counts the ops that may go, waiting also those that stand in line,
	// running the groups that are under way.
	ready, waiting, running int
	closed                  bool
	done                    sync.WaitGroup
}

// project is what may go of one project; there is always something.
type project struct {
	id  string
	ops []*pending
}

// pending is an op that somebody waits for.
type pending struct {
	op   *Op
	done chan error
	// err is what became of its group.
	err error
}

// newQueue starts workers, each of which runs one group at a time. On SQLite
// there is one writer, and more workers only wait for each other.
func newQueue(p *Params) *queue {
	q := &queue{
		ledger: p.Store, env: env{p.Clock, p.Random}, log: p.Log,
		byID: map[string]*project{}, lines: map[idempotency.Ref][]*pending{},
	}
	q.arrived = sync.NewCond(&q.mu)
	for range max(p.Workers, 1) {
		q.done.Go(q.work)
	}
	return q
}

// do runs an op and returns when its group is committed. The error is not the
// op's, which is in its outcome: unavailable (with applied false or "unknown"),
// what has failed, or ErrTaken: the op was not run. A caller that leaves does
// not stop an op that waits, and must not look at its outcome.
func (q *queue) do(ctx context.Context, op *Op) error {
	p := &pending{op: op, done: make(chan error, 1)}
	if err := q.add(p); err != nil {
		return err
	}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return fault.Wrap(api.CodeUnavailable, context.Cause(ctx), "the caller has left").With("applied", fault.AppliedUnknown)
	}
}

func (q *queue) add(p *pending) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.waiting >= maxQueue {
		return fault.New(api.CodeUnavailable, "too many movements are under way").With("applied", false).After(queueAgain)
	}
	q.waiting++
	if p.op.Key != nil {
		ref := p.op.Key.Ref()
		if line, taken := q.lines[ref]; taken {
			q.lines[ref] = append(line, p)
			return nil
		}
		q.lines[ref] = nil
	}
	one := q.project(p.op.ProjectID)
	one.ops = append(one.ops, p)
	q.ready++
	q.arrived.Signal()
	return nil
}

// project returns what may go of a project, to add to it.
func (q *queue) project(id string) *project {
	one, ok := q.byID[id]
	if !ok {
		one = &project{id: id}
		q.byID[id] = one
		q.projects = append(q.projects, one)
	}
	return one
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
// While a group is under way another begins beside it only if it is full: a
// few large groups cost less than many small ones.
func (q *queue) next() []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.running == 0 || q.ready >= maxGroup {
			if group := q.take(); len(group) > 0 {
				q.running++
				return group
			}
		}
		if q.closed && q.waiting == 0 {
			q.arrived.Broadcast()
			return nil
		}
		q.arrived.Wait()
	}
}

// take takes one op of each project in turn until the group is full or nothing
// is left that may go. Who was served goes to the end.
func (q *queue) take() []*pending {
	var group []*pending
	for len(q.projects) > 0 && len(group) < maxGroup {
		one := q.projects[0]
		q.projects[0] = nil
		q.projects = q.projects[1:]
		group = append(group, one.ops[0])
		one.ops[0] = nil
		if one.ops = one.ops[1:]; len(one.ops) > 0 {
			q.projects = append(q.projects, one)
		} else {
			delete(q.byID, one.id)
		}
	}
	q.ready -= len(group)
	q.waiting -= len(group)
	return group
}

// run applies a group. If it fails for a reason that may be one op's, or that
// may be gone, the ops are run one by one.
func (q *queue) run(group []*pending) {
	ops := make([]*Op, len(group))
	for i, p := range group {
		ops[i] = p.op
	}
	err := q.apply(ops)
	if err == nil || fault.CodeOf(err) == api.CodeUnavailable {
		for _, p := range group {
			p.err = err
		}
		return
	}
	q.log.Error("a group of movements failed; its members are tried alone", "members", len(group), "err", err)
	for _, p := range group {
		p.err = q.apply([]*Op{p.op})
	}
}

// apply runs a group, again if it is unknown whether it was committed: every
// op then either finds what it has made, or does the work anew.
func (q *queue) apply(ops []*Op) error {
	return fault.UntilKnown(func() error { return q.attempt(ops) })
}

// attempt runs a group once. A panic ends its transaction, and not the server.
func (q *queue) attempt(ops []*Op) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return q.ledger.Apply(context.Background(), Group{Ops: ops, Now: q.env.now(), NewID: q.env.newID})
}

// finish tells those who wait, and lets the ops go on that stand in line.
func (q *queue) finish(group []*pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	for _, p := range slices.Backward(group) { // so that the first comes to stand first
		if p.op.Key != nil {
			q.advance(p)
		}
		p.done <- p.err
	}
	q.arrived.Broadcast()
}

// advance lets the line behind an op go on.
func (q *queue) advance(p *pending) {
	ref := p.op.Key.Ref()
	line := q.lines[ref]
	if len(line) == 0 {
		delete(q.lines, ref)
		return
	}
	if p.tookKey() {
		delete(q.lines, ref)
		q.waiting -= len(line)
		for _, follower := range line {
			follower.done <- ErrTaken
		}
		return
	}
	q.lines[ref] = line[1:]
	one := q.project(p.op.ProjectID)
	one.ops = slices.Insert(one.ops, 0, line[0])
	q.ready++
}

// tookKey says whether the op's key is taken now, by the op or by another.
func (p *pending) tookKey() bool {
	_, judged := errors.AsType[*idempotency.Error](p.op.Outcome.Err)
	return p.err == nil && (p.op.Outcome.Err == nil || judged)
}

// close refuses new ops and returns when those that wait are done.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.arrived.Broadcast()
	q.mu.Unlock()
	q.done.Wait()
}
