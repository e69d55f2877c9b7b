package eventstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/query"
)

// TestTotals: each window has what happened in it, its first moment included
// and its last one not, and nothing of other windows, gaps, events or projects.
func TestTotals(t *testing.T) {
	t.Parallel()
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	start := at(t, "03-01 00:00")
	for i := range 60 { // one event a minute, by five persons in turn
		l.add(start, event("e", "", fmt.Sprintf("u%d", i%5), start+int64(i)*60_000, fmt.Sprintf(`{"n":%d}`, i)))
	}
	l.add(start, event("other", "", "u9", start+60_000), event("e", "a", "", start-1), identify("a", "u0", start, ""))
	minute := func(from, to int64) query.Window {
		return query.Window{From: start + from*60_000, To: start + to*60_000}
	}
	service, err := query.New(query.Options{Store: s, Progress: still{}})
	if err != nil {
		t.Fatal(err)
	}
	windows := []query.Window{minute(0, 1), minute(1, 10), minute(20, 27), minute(58, 200), minute(300, 400)}
	for _, c := range []struct {
		metric  string
		windows []query.Window
		want    []int64
	}{
		{`{"event":"e"}`, windows, []int64{1, 9, 7, 2, 0}},
		{`{"event":"e","measure":"persons"}`, windows, []int64{1, 5, 5, 2, 0}},
		{`{"event":["e","other"]}`, windows, []int64{1, 10, 7, 2, 0}},
		{`{"event":["e","other"],"measure":"persons"}`, windows[:2], []int64{1, 6}},
		{`{"event":"e","where":[{"property":"properties.n","op":"gte","value":9}]}`, windows, []int64{0, 1, 7, 2, 0}},
		{`{}`, []query.Window{{From: start - 1, To: start}, minute(0, 1)}, []int64{1, 2}}, // the identify is an event, too
		{`{"event":"e","measure":"persons"}`, []query.Window{{From: start - 1, To: start + 1}}, []int64{1}},
		{`{"event":"none"}`, windows[:1], []int64{0}},
	} {
		metric, err := query.ParseMetric([]byte(c.metric))
		if err != nil {
			t.Fatal(err)
		}
		got, stored, err := service.Totals(t.Context(), query.Totals{Project: 1, Metric: metric, Windows: c.windows})
		if err != nil {
			t.Fatalf("%s: %v", c.metric, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.metric, diff)
		}
		if stored.After(time.UnixMilli(start)) {
			t.Errorf("stored through %s", stored)
		}
		none, _, err := service.Totals(t.Context(), query.Totals{Project: 2, Metric: metric, Windows: c.windows})
		if err != nil || cmp.Diff(make([]int64, len(c.windows)), none) != "" {
			t.Errorf("%s: another project has %v (%v)", c.metric, none, err)
		}
	}
}
