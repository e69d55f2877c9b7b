//go:build crashpoints

// Package crash names the steps between which the process may die. In an
// ordinary build a point does nothing and costs nothing; built with the tag
// crashpoints, the process kills itself at the point that the environment
// names, so that tests can stop it between any two steps.
package crash

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable names the environment variable that arms one point: its name, a
// colon and how often it is passed before the process dies, as in
// "sequencer.applied:3".
const Variable = "ACTIONPULSE_CRASH_AT"

var (
	armed, left = arm(os.Getenv(Variable))
	passed      atomic.Int64
)

func arm(setting string) (string, int64) {
	name, count, _ := strings.Cut(setting, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if setting != "" && err != nil {
		panic(fmt.Sprintf("%s=%q: want name:count", Variable, setting))
	}
	return name, n
}

// Point kills the process with SIGKILL when it is the armed point and has been
// passed the armed number of times.
func Point(name string) {
	if name != armed || passed.Add(1) != left {
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // the signal is on its way; nothing after this point may happen
}
