// Package quota owns how much a caller may ask: one rate budget for each
// credential and, for browser tokens, one more for each client address. It
// never looks at what is asked and never waits.
//
// Invariants:
//   - memory is bounded: of the budgets kept, those longest unused go first,
//     and a budget that was let go begins full again;
//   - a refused request takes nothing from any budget.
package quota

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Defaults: those of [Params] are for the caller to set, but MaxBudgets.
const (
	DefaultKeyRate      = 5000
	DefaultKeyBurst     = 10000
	DefaultBrowserRate  = 50
	DefaultBrowserBurst = 200
	DefaultMaxBudgets   = 100_000
)

// maxWait bounds what a caller with a very small rate is told to wait.
const maxWait = 24 * time.Hour

// Limit is a rate budget.
type Limit struct {
	// Rate is how many requests a second it regains; 0 is unlimited.
	Rate float64
	// Burst is how many requests it holds when full, at least 1.
	Burst int
}

// Params configures a [Limiter].
type Params struct {
	// Key is the budget of a credential without one of its own.
	Key Limit
	// Browser is the budget of one client address under one browser token.
	Browser Limit
	// MaxBudgets bounds how many budgets of each kind are kept; 0 is the
	// default.
	MaxBudgets int
	Now        func() time.Time
}

// Request is one request to be admitted.
type Request struct {
	// Key is the credential's number.
	Key int64
	// Rate and Burst override the default budget of a credential; nil is the
	// default, a rate of 0 is unlimited.
	Rate  *float64
	Burst *int
	// Browser says that the credential is a browser token.
	Browser bool
	// Address is the client's, as [ClientAddress] gives it; it is only looked
	// at for browser tokens. All invalid addresses share one budget.
	Address netip.Addr
}

// Limiter admits and refuses requests. It is safe for concurrent use.
type Limiter struct {
	params    Params
	mu        sync.Mutex
	keys      budgets[int64]
	addresses budgets[address]
}

// address is one client address under one browser token.
type address struct {
	key    int64
	prefix netip.Addr
}

// New returns a limiter whose budgets are all full.
func New(p Params) *Limiter {
	if p.MaxBudgets == 0 {
		p.MaxBudgets = DefaultMaxBudgets
	}
	return &Limiter{
		params:    p,
		keys:      newBudgets[int64](p.MaxBudgets),
		addresses: newBudgets[address](p.MaxBudgets),
	}
}

// Admit takes one request out of its budgets. If one of them is used up it
// takes nothing and returns a rate_limited fault whose RetryAfter says when
// the budget holds one request again, at least a second.
func (l *Limiter) Admit(r Request) error {
	now := l.params.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	key, browser := l.find(r, now)
	if wait := shortage(browser, now); wait > 0 {
		return refuse("this client address", wait)
	}
	if wait := shortage(key, now); wait > 0 {
		return refuse("this key", wait)
	}
	for _, b := range []*rate.Limiter{key, browser} {
		if b != nil {
			b.AllowN(now, 1)
		}
	}
	return nil
}

// find returns the budgets a request needs; nil is unlimited.
func (l *Limiter) find(r Request, now time.Time) (key, browser *rate.Limiter) {
	limit := l.params.Key
	if r.Rate != nil {
		limit.Rate = *r.Rate
	}
	if r.Burst != nil {
		limit.Burst = *r.Burst
	}
	key = l.keys.find(r.Key, limit, now)
	if r.Browser {
		browser = l.addresses.find(address{r.Key, budgetPrefix(r.Address)}, l.params.Browser, now)
	}
	return key, browser
}

// shortage is how long a budget needs before it holds one request, 0 if it
// does now.
func shortage(b *rate.Limiter, now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	missing := 1 - b.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	seconds := min(missing/float64(b.Limit()), maxWait.Seconds())
	return max(time.Duration(seconds*float64(time.Second)), time.Nanosecond)
}

func refuse(whose string, wait time.Duration) error {
	return fault.New(api.CodeRateLimited, "the rate budget of %s is used up", whose).
		After(max(wait, time.Second))
}

// budgetPrefix is what one client is taken for: an IPv4 address, or the /64
// of an IPv6 address, since a single client has a whole one.
func budgetPrefix(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	prefix, err := a.WithZone("").Prefix(64)
	if err != nil {
		return netip.Addr{}
	}
	return prefix.Addr()
}
