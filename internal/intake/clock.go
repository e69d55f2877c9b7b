package intake

import (
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// maxJump is how far the wall clock may run ahead of elapsed time before its
// word is no longer taken.
const maxJump = 10 * time.Minute

// jumpRetry is what a caller is told to wait while the clock is not trusted.
const jumpRetry = 30 * time.Second

// Clock tells the time in two ways.
type Clock interface {
	// Wall is the time of day; it may jump.
	Wall() time.Time
	// Elapsed only ever grows, also while the machine is suspended.
	Elapsed() time.Duration
}

// windowClock stamps groups, and says for whoever stamps beside it whether the
// wall clock is believed. A stamp never runs backwards, and never forwards by
// much more than the time that really passed: a wall clock that jumps ahead would
// expire claims whose repeats are still on their way.
type windowClock struct {
	clock Clock
	// persisted is the newest stamp of the processes before.
	persisted int64

	mu   sync.Mutex
	last int64
	// known says that there is a time to tell a jump by: believed, in milliseconds
	// since 1970, at the elapsed time at.
	known    bool
	believed int64
	at       time.Duration
	started  bool
}

// newWindowClock begins with the wall clock's word: how long the process was
// down is not known. A wall clock that is behind the newest stamp is wrong, and
// nothing can be told by it: who puts it right makes no jump.
func newWindowClock(clock Clock, persisted int64) *windowClock {
	c := &windowClock{clock: clock, persisted: persisted, last: persisted}
	if wall := clock.Wall().UnixMilli(); wall >= persisted {
		c.believe(wall, clock.Elapsed())
	}
	return c
}

func (c *windowClock) believe(wall int64, elapsed time.Duration) {
	c.known, c.believed, c.at = true, wall, elapsed
}

// now returns the next stamp, in milliseconds since 1970, or 503 unavailable
// while the wall clock is too far ahead. The first stamp takes a wall clock's
// word that was put back since the start.
func (c *windowClock) now() (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stamp()
}

func (c *windowClock) stamp() (int64, error) {
	wall, elapsed := c.clock.Wall().UnixMilli(), c.clock.Elapsed()
	if err := c.check(wall, elapsed); err != nil {
		return 0, err
	}
	if wall >= c.last || !c.started {
		c.last, c.started = max(c.last, wall), true
		c.believe(c.last, elapsed)
	}
	return c.last, nil
}

// check returns the refusal for a wall clock that is too far ahead, or nil.
func (c *windowClock) check(wall int64, elapsed time.Duration) error {
	passed := elapsed - c.at
	if !c.known || wall <= c.believed+(passed+maxJump).Milliseconds() {
		return nil
	}
	return fault.New(api.CodeUnavailable, "The server's clock jumped ahead by %s; nothing is accepted until it is right or the server has been restarted",
		(time.Duration(wall-c.believed)*time.Millisecond-passed).Round(time.Second)).With("applied", false).After(jumpRetry)
}

// read returns the newest stamp that may be promised: no later stamp is
// smaller. While the wall clock is not trusted it stands still. Before the
// first stamp it keeps nothing: a machine that boots with a clock days ahead
// and is put right before its first event has lost nothing.
func (c *windowClock) read() int64 {
	if now, err := c.peek(); err == nil {
		return now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// peek returns what read does, or the refusal that a stamp would be now.
func (c *windowClock) peek() (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return c.stamp()
	}
	wall := c.clock.Wall().UnixMilli()
	return max(wall, c.persisted), c.check(wall, c.clock.Elapsed())
}
