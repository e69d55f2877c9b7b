package alert_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/alert"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// play has periods of five minutes happen to an alert, one for each letter: b
// is bad, g good, u not known, r resolves it by hand, m mutes it for ever, x
// ends the mute, s passes over two periods. It returns what was entered, and
// what was sent in capitals.
func play(t *testing.T, d alert.Definition, letters string) (string, *alert.Alert) {
	t.Helper()
	d.Length, d.Timezone = alert.FiveMinutes, "UTC"
	a := &alert.Alert{Definition: d, Revision: 1, Status: alert.Status{State: alert.OK}, Next: d.At(noon)}
	var all []string
	n := 0
	ids := map[string]bool{}
	for _, letter := range letters {
		step := alert.Step{Alert: a, At: a.Next.End, NewID: func() (string, error) { n++; return fmt.Sprintf("id%d", n), nil }}
		var err error
		switch letter {
		case 'b':
			err = step.Judge(alert.Judgement{Verdict: alert.Bad, Value: new(1.0)})
		case 'g':
			err = step.Judge(alert.Judgement{Verdict: alert.Good, Value: new(0.0)})
		case 'u':
			err = step.Judge(alert.Judgement{Verdict: alert.Unknown, Problem: alert.NoData})
		case 'r':
			err = step.Resolve(alert.ByHand)
		case 'm':
			err = step.Mute(time.Time{})
		case 'x':
			err = step.Unmute()
		case 's':
			err = step.Skip(a.After(a.After(a.Next)), 2)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range step.Entries {
			all = append(all, string(e.Kind))
		}
		for _, m := range step.Messages {
			if ids[m.Ref] {
				t.Errorf("%s: two messages have the id %s", letters, m.Ref)
			}
			ids[m.Ref] = true
			all = append(all, strings.ToUpper(strings.TrimPrefix(string(m.Type), "alert.")))
		}
		if (a.State == alert.Firing) != (a.FiredEntry != "") || (a.State == alert.Firing) == a.FiringSince.IsZero() || a.GoodRun > 0 && a.BadRun > 0 {
			t.Errorf("%s: %+v", letters, a.Status)
		}
	}
	return strings.Join(all, " "), a
}

// TestTransitions: when an alert fires, when it is resolved, and what is said
// of it, and nothing more.
func TestTransitions(t *testing.T) {
	t.Parallel()
	one := alert.Definition{For: 1, ResolveAfter: 1}
	calm := alert.Definition{For: 3, ResolveAfter: 2}
	for _, c := range []struct {
		letters string
		d       alert.Definition
		want    string
	}{
		{"ggg", one, ""},
		{"b", one, "fired FIRED"},
		{"bbb", one, "fired FIRED"},
		{"bg", one, "fired FIRED resolved RESOLVED"},
		{"bgbgb", one, "fired FIRED resolved RESOLVED fired FIRED resolved RESOLVED fired FIRED"},
		{"bbgbbg", calm, ""},
		{"bbbgbgbgg", calm, "fired FIRED resolved RESOLVED"},
		{"bbubbb", calm, "problem fired FIRED"}, // two, a hole, then three
		{"bbsbbb", calm, "skipped fired FIRED"},
		{"bbbgugg", calm, "fired FIRED problem resolved RESOLVED"},
		{"uuu", one, "problem"},
		{"ugu", one, strings.Repeat(" problem", 2)[1:]},
		{"bu", one, "fired FIRED problem"}, // it goes on firing
		{"r", one, ""},
		{"brb", one, "fired FIRED resolved RESOLVED fired FIRED"},
		{"bbbrbbb", calm, "fired FIRED resolved RESOLVED fired FIRED"},
		{"bbbrbb", calm, "fired FIRED resolved RESOLVED"}, // the bad ones before do not count
		{"mb", one, "muted fired"},
		{"mbg", one, "muted fired resolved"},
		{"mbbxb", one, "muted fired unmuted announced FIRED"},
		{"mbbxbbg", one, "muted fired unmuted announced FIRED resolved RESOLVED"},
		{"mbbxg", one, "muted fired unmuted resolved"},      // nobody was told of its beginning
		{"bmg", one, "fired FIRED muted resolved RESOLVED"}, // it was told of the beginning
		{"bmgb", one, "fired FIRED muted resolved RESOLVED fired"},
		{"bmxg", one, "fired FIRED muted unmuted resolved RESOLVED"},
		{"bmbxb", one, "fired FIRED muted unmuted"}, // it was told before
		{"xx", one, ""},
		{"bmr", one, "fired FIRED muted resolved RESOLVED"},
	} {
		if got, _ := play(t, c.d, c.letters); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.letters, got, c.want)
		}
	}
}

// TestRedefine: an alert that watches something else begins anew, with a
// period that was not judged; a new name changes nothing.
func TestRedefine(t *testing.T) {
	t.Parallel()
	_, a := play(t, alert.Definition{Name: "a", For: 1, ResolveAfter: 1}, "gb")
	before := *a
	step := alert.Step{Alert: a, At: noon.Add(12 * time.Minute), NewID: func() (string, error) { return "id", nil }, UserID: "u"}
	renamed := a.Definition
	renamed.Name = "b"
	if err := step.Redefine(renamed); err != nil || a.Revision != 1 || a.State != alert.Firing || len(step.Entries) != 0 || a.Name != "b" {
		t.Errorf("%+v %v", a, err)
	}
	other := a.Definition
	other.Length, other.For = alert.Hour, 2
	if err := step.Redefine(other); err != nil {
		t.Fatal(err)
	}
	if a.Revision != 2 || a.State != alert.OK || a.BadRun != 0 || a.Next.Start.Before(before.Last.Period.End) || a.Next.Start != noon.Add(time.Hour) {
		t.Errorf("%+v", a)
	}
	if len(step.Entries) != 2 || step.Entries[0].Reason != alert.Redefined || step.Entries[1].Kind != alert.Changed || len(step.Messages) != 1 || step.Entries[0].UserID != "u" {
		t.Errorf("%+v %+v", step.Entries, step.Messages)
	}
}
