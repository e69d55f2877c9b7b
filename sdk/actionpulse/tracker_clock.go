package actionpulse

import (
	"time"

	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

const (
	// maxDrift is how far the wall clock may run from elapsed time between two
	// looks before it counts as set.
	maxDrift = 10 * time.Minute
	// settleTime is how long a clock that was set must stay so to be believed.
	settleTime = 10 * time.Minute
)

// clock notices when the wall clock was set ahead while the process runs: for
// some minutes then nothing is given up for its age, in case the clock is set
// back. (A machine that was suspended looks the same.) At its start a process
// has nothing to compare with, and believes the clock.
type clock struct {
	wall func() time.Time
	// began and wallBegan are the start, by elapsed time and by the wall.
	began, wallBegan time.Time
	// drift is what is known of how far they are apart, suspect since when
	// they are further.
	drift   time.Duration
	suspect time.Time
}

func newClock(wall func() time.Time) clock {
	return clock{wall: wall, began: time.Now(), wallBegan: wall()}
}

// doubt returns how long it is until the wall clock is believed; 0 when it is.
func (c *clock) doubt() time.Duration {
	// Round drops the monotonic reading, which would hide a clock that was set.
	drift := c.wall().Round(0).Sub(c.wallBegan.Round(0)) - time.Since(c.began)
	if ahead := drift - c.drift; ahead <= maxDrift {
		c.drift, c.suspect = drift, time.Time{}
		return 0
	}
	if c.suspect.IsZero() {
		c.suspect = time.Now()
	}
	left := settleTime - time.Since(c.suspect)
	if left <= 0 {
		c.drift, c.suspect = drift, time.Time{}
		return 0
	}
	return left
}

// age is how old a record is: since the fact, or since Track if the fact may
// be of any time or lies ahead.
func age(r outbox.Record, now time.Time, historical bool) time.Duration {
	from := min(r.At, r.Queued)
	if historical {
		from = r.Queued
	}
	return now.Sub(time.UnixMilli(from))
}
