package credential

import (
	"sync"
	"time"
)

// cache keeps answers of the store for a short time. Answers about secrets
// that do not exist have a room of their own, so that a flood of random ones
// neither grows memory nor drives out the keys in use.
type cache struct {
	ttl     time.Duration
	mu      sync.RWMutex
	changes uint64 // how often clear was called
	known   generations
	unknown generations
}

func newCache(ttl time.Duration, size int) *cache {
	half := max(size/2, 1)
	return &cache{ttl: ttl, known: generations{half: half}, unknown: generations{half: half}}
}

// get returns the answer about a hash unless it is older than the TTL.
func (c *cache) get(hash Hash, now time.Time) (answer, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.known.get(hash)
	if !ok {
		e, ok = c.unknown.get(hash)
	}
	if !ok || !now.Before(e.until) {
		return answer{}, false
	}
	return *e.answer, true
}

// epoch is to be read before the store is asked, and given to put.
func (c *cache) epoch() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changes
}

// put keeps an answer that was asked for at a time, unless the cache was
// cleared since.
func (c *cache) put(hash Hash, a answer, asked time.Time, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.changes {
		return
	}
	room := &c.known
	if !a.found {
		room = &c.unknown
	}
	room.put(hash, entry{answer: &a, until: asked.Add(c.ttl)})
}

// clear forgets everything. It is called after every change made here.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.known.clear()
	c.unknown.clear()
}

type entry struct {
	answer *answer
	until  time.Time
}

// generations is a bounded map without bookkeeping for each entry: when the
// young half is full it becomes the old half, and what was the old half is
// dropped.
type generations struct {
	half       int
	young, old map[Hash]entry
}

func (g *generations) get(hash Hash) (entry, bool) {
	if e, ok := g.young[hash]; ok {
		return e, true
	}
	e, ok := g.old[hash]
	return e, ok
}

func (g *generations) put(hash Hash, e entry) {
	if _, ok := g.young[hash]; !ok && len(g.young) >= g.half {
		g.young, g.old = nil, g.young
	}
	if g.young == nil {
		g.young = make(map[Hash]entry)
	}
	g.young[hash] = e
}

func (g *generations) clear() { g.young, g.old = nil, nil }
