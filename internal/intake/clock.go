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

// windowClock stamps groups. A stamp never runs backwards, and never forwards
// by much more than the time that really passed: a wall clock that jumps ahead
// would expire claims whose repeats are still on their way.
type windowClock struct {
	clock Clock
	// persisted is the newest stamp of the processes before.
	persisted int64

	mu   sync.Mutex
	last int64
	// at is when last was stamped, in elapsed time; meaningful once started.
	at      time.Duration
	started bool
}

// now returns the next stamp, in milliseconds since 1970, or 503 unavailable
// while the wall clock is too far ahead. The first stamp of a process takes
// the wall clock's word: how long the process was down is not known.
func (c *windowClock) now() (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.clock.Wall().UnixMilli(), c.clock.Elapsed()
	if c.started {
		limit := c.last + (elapsed - c.at + maxJump).Milliseconds()
		if wall > limit {
			return 0, fault.New(api.CodeUnavailable, "The server's clock jumped ahead by %s; nothing is accepted until it is right or the server has been restarted",
				(time.Duration(wall-c.last)*time.Millisecond-(elapsed-c.at)).Round(time.Second)).With("applied", false).After(jumpRetry)
		}
	}
	if wall >= c.last || !c.started {
		c.last, c.at, c.started = max(c.last, wall), elapsed, true
	}
	return c.last, nil
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

func (c *windowClock) peek() (int64, error) {
	c.mu.Lock()
	started := c.started
	c.mu.Unlock()
	if !started {
		return max(c.clock.Wall().UnixMilli(), c.persisted), nil
	}
	return c.now()
}
