package report_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/lab/report"
)

func example() *report.Report {
	return &report.Report{
		Tool: "lab client", Subject: "./client --fast <1>", Seed: 7,
		Settings: []report.Setting{{Name: "profile", Value: "events"}},
		Started:  time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Took: 1500 * time.Millisecond,
		Checks: []report.Check{
			{ID: "id-stable", Title: "The same id on every attempt", Source: "the table", Verdict: report.Pass, Evidence: []string{"5 items, 3 attempts", "2 restarts"}},
			{ID: "no-parallel", Title: "One request at a time", Source: "the table", Verdict: report.Fail, Evidence: []string{"2 at once\nat 1.2s", "a \x00 & <b>"}},
			{ID: "jitter", Title: "Delays differ", Source: "the table", Verdict: report.Inconclusive, Evidence: []string{"two delays only"}},
			{ID: "window", Title: "Within 48 h", Source: "the table", Verdict: report.NotTested},
		},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := example().Write(&b, report.FormatText); err != nil {
		t.Fatal(err)
	}
	want := `lab client: ./client --fast <1>
seed 7, profile events

pass          id-stable    The same id on every attempt
    - 5 items, 3 attempts (and 1 more)
FAIL          no-parallel  One request at a time
    rule: the table
    - 2 at once
      at 1.2s
    - a ` + "\x00" + ` & <b>
inconclusive  jitter       Delays differ
    - two delays only
not tested    window       Within 48 h

1 passed, 1 failed, 1 inconclusive, 1 not tested, in 1.5s
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := example().Write(&b, report.FormatJSON); err != nil {
		t.Fatal(err)
	}
	var got struct {
		report.Report

		Counts report.Counts `json:"counts"`
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := example()
	want.Checks[3].Evidence = []string{}
	if diff := cmp.Diff(*want, got.Report); diff != "" {
		t.Error(diff)
	}
	if got.Counts != (report.Counts{Pass: 1, Fail: 1, Inconclusive: 1, NotTested: 1}) || strings.Contains(b.String(), "null") {
		t.Errorf("%s", b.String())
	}
}

// TestJUnit: what did not pass is a failure or skipped, never a passed case,
// and characters that XML does not know break nothing.
func TestJUnit(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := example().Write(&b, report.FormatJUnit); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Cases    []struct {
				Name    string  `xml:"name,attr"`
				Failure *string `xml:"failure"`
				Skipped *string `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	s := got.Suite
	if s.Tests != 4 || s.Failures != 1 || s.Skipped != 2 || len(s.Cases) != 4 {
		t.Fatalf("%+v", s)
	}
	for i, want := range []struct{ failed, skipped bool }{{false, false}, {true, false}, {false, true}, {false, true}} {
		if c := s.Cases[i]; (c.Failure != nil) != want.failed || (c.Skipped != nil) != want.skipped {
			t.Errorf("%s: failed %v, skipped %v", c.Name, c.Failure != nil, c.Skipped != nil)
		}
	}
}

func TestFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verdict report.Verdict
		failed  bool
	}{{report.Pass, false}, {report.Fail, true}, {report.Inconclusive, false}, {report.NotTested, false}, {"", true}} {
		r := report.Report{Checks: []report.Check{{ID: "a", Verdict: c.verdict}}}
		if r.Failed() != c.failed {
			t.Errorf("%q: failed %v", c.verdict, r.Failed())
		}
	}
	if err := (&report.Report{}).Write(&strings.Builder{}, "html"); err == nil {
		t.Error("an unknown format was written")
	}
}
