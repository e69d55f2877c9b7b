package credit_test

import (
	"cmp"
	"slices"
	"time"
)

// model is the account as one would do it with coins: slow and obviously
// right. Every credit of a grant is a coin of its own.
type model struct {
	negative bool
	coins    []*coin // those of grants, in no order
	base     int     // credits that belong to no grant; less than 0: owed
	baseHeld int
	holds    map[string]*modelHold
	made     int // numbers coins by age
}

type coin struct {
	grant    string
	priority int
	expires  time.Time
	created  time.Time
	age      int
	hold     string // whose it is while it is held
}

type modelHold struct {
	amount, base int
	expires      time.Time
}

// baseCoin stands for a credit of the base where coins are put in order.
var baseCoin = &coin{priority: 50}

func (m *model) posted() int { return len(m.coins) + m.base }

func (m *model) held() int {
	n := 0
	for _, h := range m.holds {
		n += h.amount
	}
	return n
}

func burns(x, y *coin) int {
	never := time.Unix(1<<40, 0)
	end := func(c *coin) time.Time {
		if c.expires.IsZero() {
			return never
		}
		return c.expires
	}
	return cmp.Or(cmp.Compare(x.priority, y.priority), end(x).Compare(end(y)), x.created.Compare(y.created), cmp.Compare(x.age, y.age))
}

// first is the coin that is used next, of the free ones; nil if none is free.
func (m *model) first(withBase bool) *coin {
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

func (m *model) drop(c *coin) {
	m.coins = slices.DeleteFunc(m.coins, func(one *coin) bool { return one == c })
}

// cover pays what is owed as long as a coin is free.
func (m *model) cover() {
	for m.base < m.baseHeld {
		c := m.first(false)
		if c == nil {
			return
		}
		m.drop(c)
		m.base++
	}
}

func (m *model) topup(n int, c coin) {
	if c.priority == 50 && c.expires.IsZero() {
		m.base += n
		return
	}
	for range n {
		one := c
		m.made++
		one.age = m.made
		m.coins = append(m.coins, &one)
	}
	m.cover()
}

func (m *model) spend(n int) bool {
	if !m.negative && m.posted()-m.held() < n {
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

func (m *model) place(id string, n int, expires time.Time) bool {
	if !m.negative && m.posted()-m.held() < n {
		return false
	}
	h := &modelHold{amount: n, expires: expires}
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

// end uses n credits of a hold and lets the rest go.
func (m *model) end(id string, n int) {
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
}

func over(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// pass does what time has done. The holds that have expired are returned.
func (m *model) pass(now time.Time) (ended []string) {
	for id, h := range m.holds {
		if over(h.expires, now) {
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
func (m *model) free(id string) {
	m.baseHeld -= m.holds[id].base
	for _, c := range m.coins {
		if c.hold == id {
			c.hold = ""
		}
	}
	delete(m.holds, id)
}

func (m *model) expire(now time.Time) {
	m.coins = slices.DeleteFunc(m.coins, func(c *coin) bool { return c.hold == "" && over(c.expires, now) })
}

// next is when time does something next; zero: never.
func (m *model) next() time.Time {
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
			note(c.expires)
		}
	}
	return next
}

// lot is how many coins of a grant there are, and how many of them are held.
func (m *model) lot(grant string) (remaining, pinned int) {
	for _, c := range m.coins {
		if c.grant == grant {
			remaining++
			if c.hold != "" {
				pinned++
			}
		}
	}
	return remaining, pinned
}
