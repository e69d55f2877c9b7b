package flow

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func sized(n int) *Version { return &Version{Definition: make([]byte, n-1)} }

// TestOneBuildAtATime: who asks while a version is built waits for that.
func TestOneBuildAtATime(t *testing.T) {
	t.Parallel()
	c := newVersionCache(Params{})
	var builds atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	build := func(ctx context.Context) (*Version, error) {
		builds.Add(1)
		close(begun)
		<-release
		return sized(1), ctx.Err()
	}
	var all sync.WaitGroup
	results := make([]*Version, 20)
	ask := func(i int) {
		v, err := c.get(t.Context(), versionKey{1, 1}, build)
		if err != nil {
			t.Error(err)
		}
		results[i] = v
	}
	all.Go(func() { ask(0) })
	<-begun
	for i := 1; i < len(results); i++ {
		all.Go(func() { ask(i) })
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.get(gone, versionKey{1, 1}, build); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left: %v", err)
	}
	close(release)
	all.Wait()
	for _, v := range results {
		if v == nil || v != results[0] {
			t.Errorf("%p is not %p", v, results[0])
		}
	}
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

// TestWhoLeavesDoesNotEndTheBuild: others may wait for it.
func TestWhoLeavesDoesNotEndTheBuild(t *testing.T) {
	t.Parallel()
	c := newVersionCache(Params{})
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err := c.get(gone, versionKey{1, 1}, func(ctx context.Context) (*Version, error) { return sized(1), ctx.Err() })
	if err != nil {
		t.Error(err)
	}
}

// TestFailuresAreNotKept: neither errors nor panics, and nobody waits for ever.
func TestFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	c := newVersionCache(Params{})
	failure := errors.New("the database is away")
	if _, err := c.get(t.Context(), versionKey{1, 1}, func(context.Context) (*Version, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Errorf("%v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, err := c.get(t.Context(), versionKey{1, 1}, func(context.Context) (*Version, error) { panic("compiler") })
		t.Error(err)
	}()
	if v, err := c.get(t.Context(), versionKey{1, 1}, func(context.Context) (*Version, error) { return sized(1), nil }); err != nil || v == nil {
		t.Errorf("%v, %v", v, err)
	}
	if len(c.entries) != 1 || c.order.Len() != 1 || c.bytes != 1 {
		t.Errorf("%d entries, %d in order, %d bytes", len(c.entries), c.order.Len(), c.bytes)
	}
}

// TestTheCacheIsBounded by count and by bytes; what was used last stays.
func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Params{"count": {MaxPrograms: 3}, "bytes": {MaxProgramBytes: 30}} {
		c := newVersionCache(p)
		built := map[int64]int{}
		get := func(number int64, size int) {
			_, err := c.get(t.Context(), versionKey{1, number}, func(context.Context) (*Version, error) {
				built[number]++
				return sized(size), nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		for _, n := range []int64{1, 2, 3, 1, 4, 1, 5, 1, 3} {
			get(n, 10)
		}
		if len(c.entries) != 3 || c.bytes != 30 || built[1] != 1 || built[3] != 2 {
			t.Errorf("%s: %d entries, %d bytes, built %v", name, len(c.entries), c.bytes, built)
		}
		if name == "bytes" {
			get(6, 31)
			if len(c.entries) != 0 || c.bytes != 0 || c.order.Len() != 0 {
				t.Errorf("one that is too large is kept: %d entries, %d bytes", len(c.entries), c.bytes)
			}
		}
	}
}
