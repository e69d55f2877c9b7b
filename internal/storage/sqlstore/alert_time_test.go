package sqlstore_test

import (
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/query"
)

// testNoPeriodIsJudgedEarly: neither before it is over and settled, nor before
// events are stored so far, nor because the clock of a process is ahead.
func testNoPeriodIsJudgedEarly(t *testing.T, w *watch) {
	w.metric = func(query.Window) int64 { return 1 }
	at := w.create(t, above())
	e := w.evaluator(t, nil)
	w.pass(settle - time.Microsecond)
	mustStep(t, e, 0)
	w.pass(time.Microsecond)
	w.set(func() { w.stored = w.now.Add(-time.Microsecond) })
	mustStep(t, e, 0)
	w.set(func() { w.stored = time.Time{} })
	mustStep(t, e, 1)
	mustStep(t, e, 0)

	// A process that thinks that it is three days later has stored events
	// until then; the clock that all share knows better.
	w.set(func() { w.stored = w.now.AddDate(0, 0, 3) })
	mustStep(t, e, 0)
	// And one whose clock is behind judges nothing anew.
	w.set(func() { w.now = w.now.Add(-time.Hour) })
	mustStep(t, e, 0)
	w.set(func() { w.now, w.stored = w.now.Add(time.Hour+5*time.Minute), time.Time{} })
	mustStep(t, e, 1)
	if n := w.rows(t, "alert_evaluations"); n != 2 {
		t.Errorf("%d evaluations", n)
	}
	if kinds := w.kinds(t, at); kinds != "fired " || len(w.sent(t)) != 1 {
		t.Errorf("%s, %d messages", kinds, len(w.sent(t)))
	}
}

// testTheAnswerSaysHowFarEventsAreStored: if events were stored far enough for
// the look before the query, and were not in its answer, it does not count.
func testTheAnswerSaysHowFarEventsAreStored(t *testing.T, w *watch) {
	w.create(t, above())
	w.pass(settle)
	behind := w.evaluator(t, func(p *alert.EvaluatorParams) {
		p.Reader = &alert.Reader{Health: w.health, Querier: meanwhile{w, func() {}}}
	})
	w.set(func() { w.stored = w.now })
	w.metric = func(query.Window) int64 { w.stored = w.now.Add(-time.Second); return 1 }
	mustStep(t, behind, 0)
	if n := w.rows(t, "alert_evaluations"); n != 0 {
		t.Errorf("%d evaluations", n)
	}
	w.set(func() { w.stored, w.metric = time.Time{}, func(query.Window) int64 { return 1 } })
	mustStep(t, behind, 1)
}

// testLateEvents: those that come while a period settles count; those that come
// later change no verdict, and are in the baselines of later periods.
func testLateEvents(t *testing.T, w *watch) {
	counts := map[int64]int64{}
	w.metric = func(p query.Window) int64 { return counts[p.From] }
	first := began.Add(-5 * time.Minute).UnixMilli()
	d := above()
	d.Condition.Value = 5
	at := w.create(t, d)
	change := above()
	change.Condition = alert.Condition{Type: alert.Change, Direction: alert.Down, Percent: 50, Baseline: alert.PreviousPeriod, Minimum: 10}
	compared := w.create(t, change)
	e := w.evaluator(t, nil)
	w.set(func() { counts[first] = 5 })
	mustStep(t, e, 0)
	w.set(func() { counts[first] = 6 })
	w.pass(settle)
	mustStep(t, e, 2)
	w.set(func() { counts[first] = 100 })
	w.pass(5*time.Minute - time.Second)
	mustStep(t, e, 0)
	if a := w.get(t, at); *a.Last.Value != 6 || a.State != alert.Firing {
		t.Errorf("%+v", a.Last)
	}
	w.pass(time.Second)
	mustStep(t, e, 2)
	if a := w.get(t, compared); a.State != alert.Firing || *a.Last.Baseline != 100 || *a.Last.Value != 0 {
		t.Errorf("%+v", a.Last)
	}
}

// testCatchUp: after a downtime the latest 24 periods are judged, in turn, and
// the history says which were not.
func testCatchUp(t *testing.T, w *watch) {
	w.metric = alternating
	at := w.create(t, above())
	e := w.evaluator(t, nil)
	w.pass(settle)
	mustStep(t, e, 1)
	const missed = 3 * 24 * 12
	w.pass(missed * 5 * time.Minute)
	mustStep(t, e, 1+alert.MaxCatchUp)
	if n := w.rows(t, "alert_evaluations"); n != 1+alert.MaxCatchUp {
		t.Errorf("%d evaluations", n)
	}
	history, err := w.service.History(t.Context(), at.ProjectID, alert.HistoryParams{AlertID: at.AlertID, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, h := range history {
		if h.Kind == alert.Skipped {
			skipped++
			if h.Periods != missed-alert.MaxCatchUp || !h.Period.Start.Equal(began) || h.Period.End.Sub(h.Period.Start) != time.Duration(h.Periods)*5*time.Minute {
				t.Errorf("%+v", h)
			}
		}
	}
	if skipped != 1 || len(history) < alert.MaxCatchUp {
		t.Errorf("%d entries, %d about what was passed over", len(history), skipped)
	}
	if a := w.get(t, at); !a.Next.End.Add(settle).After(w.clock()) {
		t.Errorf("it is at %v", a.Next)
	}
}

// testQueriesFail: a metric that cannot be read is shown and tried again, with
// growing waits; until the next period is due nothing is decided, and then it
// is not known. It never makes an alert fire, nor resolves one.
func testQueriesFail(t *testing.T, w *watch) {
	w.metric = func(query.Window) int64 { return 1 }
	d := above()
	d.Condition.Direction, d.Condition.Value, d.For = alert.Below, 5, 2
	at := w.create(t, d)
	e := w.evaluator(t, nil)
	w.pass(settle)
	mustStep(t, e, 1)
	w.set(func() { w.err = fault.Wrap(api.CodeQueryTimeout, errBroken, "it took too long") })
	w.pass(5 * time.Minute)
	attempts := 0
	for range 59 {
		before := w.asked
		if _, err := e.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		attempts += w.asked - before
		w.pass(5 * time.Second)
	}
	a := w.get(t, at)
	if attempts < 4 || attempts > 6 || a.Problem != alert.QueryTimeout || a.State != alert.OK || a.BadRun != 1 || a.Attempts != int64(attempts) {
		t.Errorf("%d attempts: %+v", attempts, a.Status)
	}
	w.set(func() { w.err = errBroken })
	w.pass(11 * time.Minute)
	drain(t, e)
	a = w.get(t, at)
	if a.Last.Verdict != alert.Unknown || a.Problem != alert.QueryFailed || a.State != alert.OK || a.BadRun != 0 {
		t.Errorf("%+v, last %+v", a.Status, a.Last)
	}
	w.set(func() { w.err = nil })
	w.pass(20 * time.Minute)
	drain(t, e)
	if a = w.get(t, at); a.State != alert.Firing || a.Problem != "" || a.Attempts != 0 {
		t.Errorf("%+v", a.Status)
	}
	if kinds := w.kinds(t, at); kinds != "problem fired " || len(w.sent(t)) != 1 {
		t.Errorf("%s, %d messages", kinds, len(w.sent(t)))
	}
}
