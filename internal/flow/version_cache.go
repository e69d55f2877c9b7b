package flow

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"sync"
)

// The defaults of [Params].
const (
	DefaultMaxPrograms     = 1000
	DefaultMaxProgramBytes = 16 << 20
)

// versionCache keeps the versions that were used last. Since a version never
// changes, what it holds is never out of date. Each is made by one at a time,
// and who asks meanwhile waits for it.
type versionCache struct {
	maxCount int
	maxBytes int64

	mu      sync.Mutex
	entries map[versionKey]*list.Element
	// order holds *versionEntry, the one used last in front.
	order *list.List
	bytes int64
}

// versionKey names a version of a flow.
type versionKey struct{ flow, number int64 }

// versionEntry is a version, or one that is being made.
type versionEntry struct {
	key versionKey
	// done is closed when the others are set.
	done    chan struct{}
	version *Version
	err     error
	// size is 0 while the version is being made: such an entry stays.
	size int64
}

func newVersionCache(p Params) *versionCache {
	return &versionCache{
		maxCount: cmp.Or(p.MaxPrograms, DefaultMaxPrograms), maxBytes: cmp.Or(p.MaxProgramBytes, DefaultMaxProgramBytes),
		entries: map[versionKey]*list.Element{}, order: list.New(),
	}
}

// get returns a version, which it has built if it is not there. What failed is
// not kept. build is not cut short when ctx ends: others may wait for it.
func (c *versionCache) get(ctx context.Context, key versionKey, build func(context.Context) (*Version, error)) (*Version, error) {
	c.mu.Lock()
	if element, ok := c.entries[key]; ok {
		c.order.MoveToFront(element)
		c.mu.Unlock()
		return element.Value.(*versionEntry).wait(ctx)
	}
	e := &versionEntry{key: key, done: make(chan struct{}), err: errNotMade}
	c.entries[key] = c.order.PushFront(e)
	c.mu.Unlock()
	defer c.finish(e) // also when build panics
	e.version, e.err = build(context.WithoutCancel(ctx))
	return e.version, e.err
}

var errNotMade = errors.New("the version could not be made")

func (e *versionEntry) wait(ctx context.Context) (*Version, error) {
	select {
	case <-e.done:
		return e.version, e.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// finish keeps what was made, and drops what was used longest ago if there is
// too much now.
func (c *versionCache) finish(e *versionEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(e.done)
	if e.err != nil {
		c.drop(c.entries[e.key])
		return
	}
	e.size = int64(len(e.version.Definition)) + 1
	c.bytes += e.size
	for at := c.order.Back(); at != nil && (len(c.entries) > c.maxCount || c.bytes > c.maxBytes); {
		before := at.Prev()
		if at.Value.(*versionEntry).size > 0 {
			c.drop(at)
		}
		at = before
	}
}

func (c *versionCache) drop(at *list.Element) {
	e := c.order.Remove(at).(*versionEntry)
	delete(c.entries, e.key)
	c.bytes -= e.size
}
