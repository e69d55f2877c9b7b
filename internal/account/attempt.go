package account

import (
	"net/netip"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// The defaults of AttemptParams.
const (
	DefaultFreeFailures    = 10
	DefaultFailureInterval = 30 * time.Second
	DefaultMaxSuspects     = 100_000
)

// addressBits are what one client of IPv6 is taken to have: a whole /64.
const addressBits = 64

// AttemptParams limits failed attempts at passwords.
type AttemptParams struct {
	// FreeFailures is how many may fail at once, of one email and from one
	// client address; 0 means the default.
	FreeFailures int
	// FailureInterval is how long after that one more may fail; 0 means the
	// default.
	FailureInterval time.Duration
	// MaxSuspects bounds how many emails, and how many addresses, are
	// remembered; 0 means the default.
	MaxSuspects int
}

// attempts counts failures by email and by client address. Memory is bounded:
// of those remembered, the ones longest unused go first, and start anew.
type attempts struct {
	free     float64
	interval time.Duration
	clock    func() time.Time

	mu        sync.Mutex
	emails    suspects[string]
	addresses suspects[netip.Addr]
}

func newAttempts(p AttemptParams, clock func() time.Time) *attempts {
	if p.FreeFailures <= 0 {
		p.FreeFailures = DefaultFreeFailures
	}
	if p.FailureInterval <= 0 {
		p.FailureInterval = DefaultFailureInterval
	}
	if p.MaxSuspects <= 0 {
		p.MaxSuspects = DefaultMaxSuspects
	}
	half := max(p.MaxSuspects/2, 1)
	return &attempts{
		free: float64(p.FreeFailures), interval: p.FailureInterval, clock: clock,
		emails: suspects[string]{half: half}, addresses: suspects[netip.Addr]{half: half},
	}
}

// begin counts a failure of both ahead of time. If either has failed too
// often it counts nothing and returns the fault rate_limited, whose RetryAfter
// says when one more may be tried.
func (a *attempts) begin(email string, address netip.Addr) (err error) {
	a.change(email, address, func(e, c *budget) {
		if missing := 1 - min(e.left, c.left); missing > 0 {
			wait := time.Duration(missing * float64(a.interval))
			err = fault.New(api.CodeRateLimited, "too many failed attempts").After(max(wait, time.Second))
			return
		}
		e.left--
		c.left--
	})
	return err
}

// undo takes back what begin has counted.
func (a *attempts) undo(email string, address netip.Addr) {
	a.change(email, address, func(e, c *budget) {
		e.left = min(e.left+1, a.free)
		c.left = min(c.left+1, a.free)
	})
}

// succeed takes back what begin has counted, and forgets the email's failures.
func (a *attempts) succeed(email string, address netip.Addr) {
	a.change(email, address, func(e, c *budget) {
		e.left = a.free
		c.left = min(c.left+1, a.free)
	})
}

// change has fn change the budgets of an email and of an address as they are
// now. Only those that are not full are remembered afterwards: what costs
// nothing, such as an attempt that is refused, drives out nobody's failures.
func (a *attempts) change(email string, address netip.Addr, fn func(e, c *budget)) {
	if len(email) > emailLimit {
		email = "" // it is nobody's, and must not fill memory
	}
	address = clientPrefix(address)
	a.mu.Lock()
	defer a.mu.Unlock()
	e, c := a.emails.find(email, a.free), a.addresses.find(address, a.free)
	now := a.clock()
	for _, b := range []*budget{e, c} {
		if passed := now.Sub(b.at); !b.at.IsZero() && passed > 0 {
			b.left = min(b.left+passed.Seconds()/a.interval.Seconds(), a.free)
		}
		b.at = now
	}
	fn(e, c)
	a.emails.keep(email, e, a.free)
	a.addresses.keep(address, c, a.free)
}

// clientPrefix is what one client is taken for: an IPv4 address, or the /64 of
// an IPv6 address.
func clientPrefix(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	prefix, err := a.WithZone("").Prefix(addressBits)
	if err != nil {
		return netip.Addr{}
	}
	return prefix.Addr()
}

// budget is how many failures are left, as of a time.
type budget struct {
	left float64
	at   time.Time
}

// suspects keeps at most two halves of budgets: what is used moves to the
// young half, and when that is full the old one is let go.
type suspects[K comparable] struct {
	half       int
	young, old map[K]*budget
}

// find returns the budget of k, a full one if there is none.
func (s *suspects[K]) find(k K, full float64) *budget {
	if b := s.young[k]; b != nil {
		return b
	}
	if b := s.old[k]; b != nil {
		return b
	}
	return &budget{left: full}
}

// keep remembers the budget of k, unless it is full.
func (s *suspects[K]) keep(k K, b *budget, full float64) {
	if b.left >= full {
		delete(s.young, k)
		delete(s.old, k)
		return
	}
	if s.young[k] == nil && len(s.young) >= s.half {
		s.old, s.young = s.young, nil
	}
	if s.young == nil {
		s.young = map[K]*budget{}
	}
	s.young[k] = b
}
