package quota

import (
	"time"

	"golang.org/x/time/rate"
)

// budgets keeps at most max of the budgets last used, in two halves: what is
// used moves to the young half, and when that is full the old one is let go.
type budgets[K comparable] struct {
	half       int
	young, old map[K]*rate.Limiter
}

func newBudgets[K comparable](limit int) budgets[K] {
	return budgets[K]{half: max(limit/2, 1), young: map[K]*rate.Limiter{}}
}

// find returns the budget of k, adapted to the limit, or nil if unlimited.
func (b *budgets[K]) find(k K, limit Limit, now time.Time) *rate.Limiter {
	if limit.Rate <= 0 {
		return nil
	}
	limit.Burst = max(limit.Burst, 1)
	found := b.young[k]
	if found == nil {
		found = b.promote(k, limit)
	}
	if found.Limit() != rate.Limit(limit.Rate) {
		found.SetLimitAt(now, rate.Limit(limit.Rate))
	}
	if found.Burst() != limit.Burst {
		found.SetBurstAt(now, limit.Burst)
	}
	return found
}

// promote moves k's budget into the young half, making it if there is none.
func (b *budgets[K]) promote(k K, limit Limit) *rate.Limiter {
	found := b.old[k]
	if found == nil {
		found = rate.NewLimiter(rate.Limit(limit.Rate), limit.Burst)
	}
	if len(b.young) >= b.half {
		b.old, b.young = b.young, make(map[K]*rate.Limiter, b.half)
	}
	b.young[k] = found
	return found
}

// size is how many budgets are kept.
func (b *budgets[K]) size() int { return len(b.young) + len(b.old) }
