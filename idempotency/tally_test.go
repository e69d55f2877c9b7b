package idempotency_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// ledger is what a tally hands its counts to.
type ledger struct {
	mu    sync.Mutex
	calls int
	sums  map[idempotency.Ref]idempotency.Count
	err   error
}

func (l *ledger) add(_ context.Context, counts []idempotency.Count) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.err != nil {
		return l.err
	}
	for _, c := range counts {
		sum := l.sums[c.Ref]
		l.sums[c.Ref] = idempotency.Count{Ref: c.Ref, Repeats: sum.Repeats + c.Repeats, Conflicts: sum.Conflicts + c.Conflicts}
	}
	return nil
}

func (l *ledger) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *ledger) sum(ref idempotency.Ref) idempotency.Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sums[ref]
}

func newLedger() *ledger { return &ledger{sums: map[idempotency.Ref]idempotency.Count{}} }

func ref(key string) idempotency.Ref {
	return idempotency.Ref{Scope: "s", Namespace: "n", Key: key}
}

func TestTallyHandsOnEachCountOnce(t *testing.T) {
	l := newLedger()
	tally := idempotency.NewTally(l.add)
	if err := tally.Flush(t.Context()); err != nil || l.calls != 0 {
		t.Fatalf("an empty tally was handed on: %v", err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 100 {
				tally.Repeat(ref("a"))
				tally.Conflict(ref("b"))
			}
			if err := tally.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := tally.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := l.sums[ref("a")], l.sums[ref("b")]; a.Repeats != 1000 || a.Conflicts != 0 || b.Conflicts != 1000 || b.Repeats != 0 {
		t.Errorf("got %+v and %+v", a, b)
	}
}

func TestAFailedFlushKeepsItsCounts(t *testing.T) {
	l := newLedger()
	l.err = errors.New("disk")
	tally := idempotency.NewTally(l.add)
	tally.Repeat(ref("a"))
	if err := tally.Flush(t.Context()); !errors.Is(err, l.err) {
		t.Fatal(err)
	}
	tally.Conflict(ref("a"))
	l.err = nil
	if err := tally.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.sums[ref("a")]; got.Repeats != 1 || got.Conflicts != 1 {
		t.Errorf("got %+v", got)
	}
}

// Whoever sends many keys must not fill the memory.
func TestTallyIsBounded(t *testing.T) {
	const limit = 100_000
	l := newLedger()
	tally := idempotency.NewTally(l.add)
	for i := range limit + 10 {
		tally.Repeat(ref(strconv.Itoa(i)))
	}
	tally.Repeat(ref("0")) // known keys go on being counted
	if err := tally.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(l.sums) != limit || l.sums[ref("0")].Repeats != 2 {
		t.Errorf("%d keys, the first %+v", len(l.sums), l.sums[ref("0")])
	}
	tally.Repeat(ref("new"))
	if err := tally.Flush(t.Context()); err != nil || l.sums[ref("new")].Repeats != 1 {
		t.Errorf("it is full for ever: %v", err)
	}
}

func TestTallyRunsUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		tally := idempotency.NewTally(l.add)
		ctx, stop := context.WithCancel(t.Context())
		var failures atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			tally.Run(ctx, time.Second, func(error) { failures.Add(1) })
		}()
		tally.Repeat(ref("a"))
		l.set(errors.New("disk"))
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		if failures.Load() != 1 || l.sum(ref("a")).Repeats != 0 {
			t.Fatalf("%d failures, %+v", failures.Load(), l.sum(ref("a")))
		}
		l.set(nil)
		<-time.After(time.Second)
		synctest.Wait()
		if failures.Load() != 1 || l.sum(ref("a")).Repeats != 1 {
			t.Fatalf("%d failures, %+v", failures.Load(), l.sum(ref("a")))
		}
		tally.Repeat(ref("a"))
		stop()
		<-ended
		if l.sum(ref("a")).Repeats != 2 {
			t.Errorf("the last counts are lost: %+v", l.sum(ref("a")))
		}
	})
}
