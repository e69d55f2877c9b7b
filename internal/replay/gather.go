package replay

import (
	"context"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// maxGroup is how many members share a transaction.
const maxGroup = 64

// gather has those that arrive at once share a transaction: while one group is
// being committed the next gathers, and nobody waits when nothing is under way.
type gather[T any] struct {
	run     func(ctx context.Context, members []T) error
	workers int

	mu      sync.Mutex
	waiting []gathered[T]
	running int
	closed  bool
	done    sync.WaitGroup
}

// gathered is a member that somebody waits for.
type gathered[T any] struct {
	member T
	done   chan error
}

// newGather runs at most so many groups at once.
func newGather[T any](workers int, run func(context.Context, []T) error) *gather[T] {
	return &gather[T]{run: run, workers: max(workers, 1)}
}

// do returns once the member's group is committed. It does not give up when the
// caller does: what the member refers to is in use.
func (g *gather[T]) do(member T) error {
	one := gathered[T]{member: member, done: make(chan error, 1)}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return fault.New(api.CodeUnavailable, "the server is shutting down").With("applied", false).After(time.Second)
	}
	g.waiting = append(g.waiting, one)
	if g.running < g.workers {
		g.running++
		g.done.Go(g.work)
	}
	g.mu.Unlock()
	return <-one.done
}

// work runs groups until nobody waits.
func (g *gather[T]) work() {
	for group := g.next(); group != nil; group = g.next() {
		members := make([]T, len(group))
		for i, one := range group {
			members[i] = one.member
		}
		err := g.attempt(members)
		if err == nil || len(group) == 1 || fault.CodeOf(err) == api.CodeUnavailable {
			for _, one := range group {
				one.done <- err
			}
			continue
		}
		// What has failed may be one member's: each is tried alone.
		for _, one := range group {
			one.done <- g.attempt([]T{one.member})
		}
	}
}

// next takes what has arrived; nil if nobody waits.
func (g *gather[T]) next() []gathered[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), maxGroup)
	if n == 0 {
		g.waiting = nil
		g.running--
		return nil
	}
	group := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	return group
}

// attempt runs a group, again if it is unknown whether it was committed: each
// member then either finds what it has made, or does it anew.
func (g *gather[T]) attempt(members []T) error {
	return fault.UntilKnown(func() error { return g.run(context.Background(), members) })
}

// close refuses new members and returns when those that wait are done.
func (g *gather[T]) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.done.Wait()
}
