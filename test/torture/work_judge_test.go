package torture_test

import (
	"errors"
	"testing"
)

// TestLabourSeesWhatIsWrong: the judge of keyed work is not blind.
func TestLabourSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	run := func(id, status string, replayed bool) workAnswer {
		a := workAnswer{replayed: replayed}
		a.Execution.ID, a.Execution.Status = id, status
		return a
	}
	for name, c := range map[string]struct {
		answers []workAnswer
		right   bool
	}{
		"once, and repeats":  {[]workAnswer{run("a", "running", false), run("a", "running", true), run("a", "failed", true), run("a", "failed", true)}, true},
		"only repeats":       {[]workAnswer{run("a", "queued", true), run("a", "succeeded", true)}, true},
		"another execution":  {[]workAnswer{run("a", "succeeded", false), run("b", "succeeded", true)}, false},
		"done twice":         {[]workAnswer{run("a", "succeeded", false), run("a", "succeeded", false)}, false},
		"nothing":            {[]workAnswer{{}}, false},
		"another end":        {[]workAnswer{run("a", "succeeded", false), run("a", "failed", true)}, false},
		"an end that is not": {[]workAnswer{run("a", "succeeded", false), run("a", "running", true)}, false},
	} {
		l, u := &labour{}, &unit{key: "k"}
		var err error
		for _, a := range c.answers {
			if err == nil {
				err = l.acknowledge(u, l.endOf(u), &a)
			}
		}
		if (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, u := &labour{}, &unit{key: "k"}
	end, late, other := run("a", "succeeded", true), run("a", "queued", false), run("a", "failed", true)
	if err := errors.Join(l.acknowledge(u, "", &end), l.acknowledge(u, "", &late)); err != nil {
		t.Errorf("an answer that came late: %v", err)
	}
	if l.acknowledge(u, "", &other) == nil {
		t.Error("another end that was asked for before")
	}
}
