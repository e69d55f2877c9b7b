package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// A change is run again only while nobody knows whether it was made, and what
// fails after that says nothing of what went before.
func TestUntilKnown(t *testing.T) {
	failed := errors.New("disk full")
	known := fault.New(api.CodeUnavailable, "").With("applied", false)
	unknown := fmt.Errorf("commit: %w", fault.New(api.CodeUnavailable, "").With("applied", fault.AppliedUnknown))
	for name, tt := range map[string]struct {
		runs []error
		want error
		left int
	}{
		"made":                          {runs: []error{nil, failed}, left: 1},
		"not made":                      {runs: []error{failed, nil}, want: failed, left: 1},
		"not begun":                     {runs: []error{known, nil}, want: known, left: 1},
		"found by the second":           {runs: []error{unknown, nil, failed}, left: 1},
		"unknown, then not begun":       {runs: []error{unknown, known, nil, failed}, left: 1},
		"unknown, then failed for good": {runs: []error{unknown, failed, failed}, want: unknown},
		"never known":                   {runs: []error{unknown, unknown, unknown, nil}, want: unknown, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			runs := tt.runs
			err := fault.UntilKnown(func() error {
				err := runs[0]
				runs = runs[1:]
				return err
			})
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || fault.MayBeApplied(err) != fault.MayBeApplied(tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if len(runs) != tt.left {
				t.Errorf("%d runs are left, want %d", len(runs), tt.left)
			}
		})
	}
}
