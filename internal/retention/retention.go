// Package retention owns how long projects keep their events and session
// replays, and has them deleted when that time is over. It never deletes
// anything itself, and never decides what a repeat of something deleted is: the
// claims of events outlive them in the window, the marks of chunks for ever.
//
// Invariants:
//   - nothing is deleted of a project but what that project's retention, or
//     else the server's, has let go;
//   - no event is deleted within the deduplication window, whatever the
//     settings say;
//   - age is judged by the time that intake vouches for, and by the receipt of
//     the newest event where that is earlier: never by a wall clock that may be
//     wrong. The stores see to the latter, whoever asks them to delete;
//   - what was deleted stays deleted, and a worker that was killed goes on
//     where it was.
package retention

import (
	"time"

	"github.com/actionpulse/actionpulse/internal/fault"
)

// day is a day of a retention: always 24 hours.
const day = 24 * time.Hour

// maxDays is a hundred years: no number of days overflows a duration.
const maxDays = 36_500

// Days are how many days something is kept; 0 is not said.
type Days struct {
	Events  int
	Replays int
}

// Change is what becomes of a project's days: nil leaves a member as it is, 0
// leaves it to the server.
type Change struct {
	Events  *int
	Replays *int
}

// Of returns what days become by the change.
func (c Change) Of(d Days) Days {
	if c.Events != nil {
		d.Events = *c.Events
	}
	if c.Replays != nil {
		d.Replays = *c.Replays
	}
	return d
}

// Rules are what holds for all projects.
type Rules struct {
	// Default is how long projects keep what they do not say themselves; 0 is
	// for ever.
	Default Days
	// Window is how long ids of events are remembered.
	Window time.Duration
}

// Validate returns the fault validation_failed for days that no project may
// ask for. 0 leaves it to the server.
func (r Rules) Validate(d Days) error {
	least := r.leastEvents()
	switch {
	case d.Events != 0 && (d.Events < least || d.Events > maxDays):
		return fault.Field("retention.events_days",
			"events_days must be null or from %d, since ids of events are remembered for %s, to %d", least, r.Window, maxDays)
	case d.Replays < 0 || d.Replays > maxDays:
		return fault.Field("retention.replays_days", "replays_days must be null or from 1 to %d", maxDays)
	}
	return nil
}

// InForce returns how long a project keeps what; 0 is for ever. A window that has
// grown since the days of events were set comes first.
func (r Rules) InForce(own Days) Days {
	own = r.said(own)
	if own.Events > 0 {
		own.Events = max(own.Events, r.leastEvents())
	}
	return own
}

// leastEvents is how many days events are kept at least.
func (r Rules) leastEvents() int { return max(int((r.Window+day-1)/day), 1) }

// said returns what the project says, or else the server.
func (r Rules) said(own Days) Days {
	if own.Events == 0 {
		own.Events = r.Default.Events
	}
	if own.Replays == 0 {
		own.Replays = r.Default.Replays
	}
	return own
}

// eventsKept returns how long a project's events are kept, and whether they ever
// go. A window that has grown since the days were set comes first.
func (r Rules) eventsKept(own Days) (time.Duration, bool) {
	days := r.said(own).Events
	return max(time.Duration(days)*day, r.Window), days > 0
}

// replaysKept returns how long a project's chunks of replays are kept, and
// whether they ever go.
func (r Rules) replaysKept(own Days) (time.Duration, bool) {
	days := r.InForce(own).Replays
	return time.Duration(days) * day, days > 0
}
