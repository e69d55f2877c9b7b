// Package credittest has a model of a balance, for tests that compare the real
// one with it. It is imported by tests only.
package credittest

import (
	"cmp"
	"slices"
	"time"
)

// Model is a balance as one would do it with coins: slow and obviously right.
// Every credit of a grant is a coin of its own.
type Model struct {
	negative bool
	coins    []*coin // those of grants, in no order
	base     int     // credits that belong to no grant; less than 0: owed
	baseHeld int
	holds    map[string]*hold
	made     int // numbers coins by age
}

// New returns an empty balance.
func New(allowNegative bool) *Model {
	return &Model{negative: allowNegative, holds: map[string]*hold{}}
}

// Grant is what a topup says, and when it was made.
type Grant struct {
	Name     string
	Priority int
	// Expires is zero for credits that do not.
	Expires, Created time.Time
}

// coin is one credit of a grant.
type coin struct {
	Grant

	age  int
	hold string // whose it is while it is held
}

type hold struct {
	amount, base int
	expires      time.Time
}

// baseCoin stands for a credit of the base where coins are put in order.
var baseCoin = &coin{Grant: Grant{Priority: 50}}

// Posted is how many credits there are.
func (m *Model) Posted() int { return len(m.coins) + m.base }

// Held is how many of them are held.
func (m *Model) Held() int {
	n := 0
	for _, h := range m.holds {
		n += h.amount
	}
	return n
}

// Coins is how many credits of grants there are.
func (m *Model) Coins() int { return len(m.coins) }

func burns(x, y *coin) int {
	return cmp.Or(
		cmp.Compare(x.Priority, y.Priority), end(x).Compare(end(y)), x.Created.Compare(y.Created), cmp.Compare(x.age, y.age))
}

// end is when a coin expires; in the far future if it does not.
func end(c *coin) time.Time {
	if c.Expires.IsZero() {
		return time.Unix(1<<40, 0)
	}
	return c.Expires
}

// first is the coin that is used next, of the free ones; nil if none is free.
func (m *Model) first(withBase bool) *coin {
	var free []*coin
	for _, c := range m.coins {
		if c.hold == "" {
			free = append(free, c)
		}
	}
	if withBase && m.base > m.baseHeld {
		free = append(free, baseCoin)
	}
	if len(free) == 0 {
		return nil
	}
	return slices.MinFunc(free, burns)
}

func (m *Model) drop(c *coin) {
	m.coins = slices.DeleteFunc(m.coins, func(one *coin) bool { return one == c })
}

// cover pays what is owed as long as a coin is free.
func (m *Model) cover() {
	for m.base < m.baseHeld {
		c := m.first(false)
		if c == nil {
			return
		}
		m.drop(c)
		m.base++
	}
}

// Topup adds n credits.
func (m *Model) Topup(n int, g Grant) {
	if g.Priority == 50 && g.Expires.IsZero() {
		m.base += n
		return
	}
	for range n {
		m.made++
		m.coins = append(m.coins, &coin{Grant: g, age: m.made})
	}
	m.cover()
}

// Add adds n credits that never expire.
func (m *Model) Add(n int) { m.base += n }

// Spend uses n credits, and says whether that is allowed.
func (m *Model) Spend(n int) bool {
	if !m.negative && m.Posted()-m.Held() < n {
		return false
	}
	for range n {
		if c := m.first(true); c == nil || c == baseCoin {
			m.base--
		} else {
			m.drop(c)
		}
	}
	return true
}

// Place sets n credits aside, and says whether that is allowed.
func (m *Model) Place(id string, n int, expires time.Time) bool {
	if !m.negative && m.Posted()-m.Held() < n {
		return false
	}
	h := &hold{amount: n, expires: expires}
	for range n {
		if c := m.first(true); c == nil || c == baseCoin {
			h.base++
			m.baseHeld++
		} else {
			c.hold = id
		}
	}
	m.holds[id] = h
	return true
}

// End uses n credits of a hold and lets the rest go; what has expired by now is
// gone then.
func (m *Model) End(id string, n int, now time.Time) {
	h := m.holds[id]
	for range n {
		var mine []*coin
		for _, c := range m.coins {
			if c.hold == id {
				mine = append(mine, c)
			}
		}
		if h.base > 0 {
			mine = append(mine, baseCoin)
		}
		c := slices.MinFunc(mine, burns)
		if c != baseCoin {
			m.drop(c)
			continue
		}
		h.base--
		m.base--
		m.baseHeld--
	}
	m.free(id)
	m.cover()
	m.expire(now)
}

// Over says whether t is a time and has come.
func Over(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// Pass does what time has done by now. It returns the holds that have expired.
func (m *Model) Pass(now time.Time) (ended []string) {
	for id, h := range m.holds {
		if Over(h.expires, now) {
			ended = append(ended, id)
		}
	}
	for _, id := range ended {
		m.free(id)
	}
	m.cover()
	m.expire(now)
	return ended
}

// free lets a hold go without anything being paid yet: what ends at one moment
// ends together.
func (m *Model) free(id string) {
	m.baseHeld -= m.holds[id].base
	for _, c := range m.coins {
		if c.hold == id {
			c.hold = ""
		}
	}
	delete(m.holds, id)
}

func (m *Model) expire(now time.Time) {
	m.coins = slices.DeleteFunc(m.coins, func(c *coin) bool { return c.hold == "" && Over(c.Expires, now) })
}

// Next is when time does something next; zero: never.
func (m *Model) Next() time.Time {
	var next time.Time
	note := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, h := range m.holds {
		note(h.expires)
	}
	for _, c := range m.coins {
		if c.hold == "" {
			note(c.Expires)
		}
	}
	return next
}

// Lot is how many coins of a grant there are, and how many of them are held.
func (m *Model) Lot(grant string) (remaining, pinned int) {
	for _, c := range m.coins {
		if c.Name == grant {
			remaining++
			if c.hold != "" {
				pinned++
			}
		}
	}
	return remaining, pinned
}
