package proptest_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/proptest"
)

const checks = 3

func TestMain(m *testing.M) {
	proptest.Checks(checks)
	os.Exit(m.Run())
}

// A property is checked as often as was said; the command line has the last
// word.
func TestChecks(t *testing.T) {
	t.Parallel()
	made := 0
	rapid.Check(t, func(*rapid.T) { made++ })
	asked := slices.ContainsFunc(os.Args, func(a string) bool { return strings.Contains(a, "rapid.checks") })
	if (made == checks) == asked {
		t.Errorf("checked %d times of its own accord %d", made, checks)
	}
}
