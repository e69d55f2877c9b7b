package judgeclient_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
	"github.com/actionpulse/actionpulse/internal/lab/report"
)

// judge runs a client through its profile, in a time of its own, and compares
// which rules it breaks: those, and no other.
func judge(t *testing.T, p *judgeclient.Params, failed []string) *report.Report {
	t.Helper()
	p.Folder = t.TempDir()
	p.Name = t.Name()
	if p.API.Name == "" {
		p.API = judgeclient.ActionPulse
	}
	var result *report.Report
	synctest.Test(t, func(t *testing.T) {
		var err error
		if result, err = judgeclient.Run(t.Context(), *p); err != nil {
			t.Fatal(err)
		}
	})
	var got []string
	for _, c := range result.Checks {
		if c.Verdict == report.Fail {
			got = append(got, c.ID)
		}
	}
	want := slices.Clone(failed)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("broken rules %q, want %q", got, want)
	}
	if failed == nil {
		for _, c := range result.Checks {
			if c.Verdict != report.Pass {
				t.Errorf("%s: %s", c.ID, c.Verdict)
			}
		}
	}
	if t.Failed() {
		var b strings.Builder
		if err := result.Text(&b); err != nil {
			t.Fatal(err)
		}
		t.Log(b.String())
	}
	return result
}
