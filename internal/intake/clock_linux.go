package intake

import (
	"time"

	"golang.org/x/sys/unix"
)

// SystemClock is the machine's clock. Elapsed counts from boot.
type SystemClock struct{}

// Wall returns the time of day.
func (SystemClock) Wall() time.Time { return time.Now() }

// Elapsed returns the time since boot, suspension included.
func (SystemClock) Elapsed() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // Linux has had this clock since 2.6.39
	}
	return time.Duration(ts.Nano())
}
