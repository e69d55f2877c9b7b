//go:build !linux

package intake

import "time"

var processStart = time.Now()

// SystemClock is the machine's clock. Elapsed counts from the start of the
// process.
type SystemClock struct{}

// Wall returns the time of day.
func (SystemClock) Wall() time.Time { return time.Now() }

// Elapsed returns the time since the process started.
func (SystemClock) Elapsed() time.Duration { return time.Since(processStart) }
