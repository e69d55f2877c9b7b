package idempotency

import (
	"context"
	"sync"
	"time"
)

// Count is how often a key was seen again.
type Count struct {
	Ref                Ref
	Repeats, Conflicts int64
}

// Tally counts repeats and conflicts in memory and hands them on in groups, so
// that a replay writes nothing. What it has not handed on is lost in a crash.
// It is safe for concurrent use.
type Tally struct {
	add    func(context.Context, []Count) error
	mu     sync.Mutex
	counts map[Ref]Count
}

// tallyLimit bounds the keys that are counted between two flushes; more are
// not counted.
const tallyLimit = 100_000

// NewTally returns a tally that hands counts to add, which may fail: they are
// handed over again.
func NewTally(add func(context.Context, []Count) error) *Tally {
	return &Tally{add: add, counts: map[Ref]Count{}}
}

// Repeat counts a repeat of a key.
func (t *Tally) Repeat(ref Ref) { t.count(Count{Ref: ref, Repeats: 1}) }

// Conflict counts a request that a key has refused.
func (t *Tally) Conflict(ref Ref) { t.count(Count{Ref: ref, Conflicts: 1}) }

func (t *Tally) count(c Count) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum, ok := t.counts[c.Ref]
	if !ok && len(t.counts) >= tallyLimit {
		return
	}
	sum.Ref = c.Ref
	sum.Repeats += c.Repeats
	sum.Conflicts += c.Conflicts
	t.counts[c.Ref] = sum
}

// Flush hands on what has been counted since the last flush.
func (t *Tally) Flush(ctx context.Context) error {
	t.mu.Lock()
	counts := make([]Count, 0, len(t.counts))
	for _, c := range t.counts {
		counts = append(counts, c)
	}
	clear(t.counts)
	t.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	err := t.add(ctx, counts)
	if err != nil {
		for _, c := range counts {
			t.count(c)
		}
	}
	return err
}

// Run flushes every interval until ctx ends, and once more then. failed is told
// of flushes that fail.
func (t *Tally) Run(ctx context.Context, interval time.Duration, failed func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := t.Flush(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		case <-ctx.Done():
			if err := t.Flush(context.WithoutCancel(ctx)); err != nil {
				failed(err)
			}
			return
		}
	}
}
