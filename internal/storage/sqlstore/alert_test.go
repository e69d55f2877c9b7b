package sqlstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// testMuteAndResolve: what is muted is judged and recorded and not told, and
// what is resolved by hand is told with who has done it.
func testMuteAndResolve(t *testing.T, w *watch) {
	w.metric = func(query.Window) int64 { return 1 }
	at := w.create(t, above())
	e := w.evaluator(t, nil)
	if _, err := w.service.Mute(t.Context(), at, w.clock()); fault.CodeOf(err) != api.CodeValidationFailed {
		t.Errorf("a mute that is over: %v", err)
	}
	if _, err := w.service.Mute(t.Context(), at, began.Add(10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	w.pass(settle)
	mustStep(t, e, 1)
	w.pass(5 * time.Minute)
	mustStep(t, e, 1)
	if sent := w.sent(t); len(sent) != 0 || w.get(t, at).State != alert.Firing {
		t.Fatalf("%d messages, %+v", len(sent), w.get(t, at).Status)
	}
	w.pass(5 * time.Minute)
	mustStep(t, e, 1)
	if a := w.get(t, at); a.Muted(w.clock()) || len(w.sent(t)) != 1 {
		t.Errorf("%+v, %d messages", a.Mute, len(w.sent(t)))
	}
	a, err := w.service.Resolve(t.Context(), at)
	if err != nil || a.State != alert.OK {
		t.Fatalf("%+v %v", a, err)
	}
	sent := w.sent(t)
	if body := string(sent[len(sent)-1].Message.Body); len(sent) != 2 || !strings.Contains(body, `"reason":"by_hand"`) || !strings.Contains(body, w.place.Actor.UserID) ||
		!strings.Contains(body, `"fired_message_id":"`+sent[0].Message.ID+`"`) {
		t.Errorf("%d messages, the last %s", len(sent), body)
	}
	if _, err := w.service.Resolve(t.Context(), at); err != nil || len(w.sent(t)) != 2 {
		t.Errorf("resolved twice: %v, %d messages", err, len(w.sent(t)))
	}
	w.pass(5 * time.Minute)
	mustStep(t, e, 1)
	if kinds := w.kinds(t, at); kinds != "muted fired announced resolved fired " || len(w.sent(t)) != 3 {
		t.Errorf("%s, %d messages", kinds, len(w.sent(t)))
	}
	if err := w.service.Delete(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Get(t.Context(), at.ProjectID, at.AlertID); fault.CodeOf(err) != api.CodeNotFound || len(w.sent(t)) != 4 {
		t.Errorf("%v, %d messages", err, len(w.sent(t)))
	}
	w.pass(5 * time.Minute)
	mustStep(t, e, 0)
}

// testIngestHealth: an alert on the health of intake goes on when the event
// store does not, and its baseline outlives the process that has counted.
func testIngestHealth(t *testing.T, w *watch) {
	d := above()
	d.Source = alert.Source{Kind: alert.RejectionRate}
	d.Condition = alert.Condition{Type: alert.Change, Direction: alert.Up, Percent: 100, Baseline: alert.MeanOfPeriods, Periods: 3, Minimum: 10}
	rates := w.create(t, d)
	lag := above()
	lag.Source, lag.Condition.Value = alert.Source{Kind: alert.LagSeconds}, 30
	waits := w.create(t, lag)
	w.set(func() { w.stored = began.AddDate(0, 0, -1) }) // nothing is stored for a day
	count := func(at time.Time, rejected int64) {
		w.health.Count(w.number, at, alert.Traffic{Accepted: 100 - rejected, Rejected: rejected})
	}
	count(began.Add(-10*time.Minute), 1)
	count(began.Add(-time.Minute), 1)
	w.health.Lag(began.Add(-time.Minute), 31*time.Second)
	w.pass(settle)
	mustStep(t, w.evaluator(t, nil), 2)
	if a := w.get(t, rates); a.State != alert.OK || *a.Last.Value != 0.01 || *a.Last.Baseline != 0.01 {
		t.Errorf("%+v %+v", a.Status, a.Last)
	}
	if a := w.get(t, waits); a.State != alert.Firing || *a.Last.Value != 31 {
		t.Errorf("%+v %+v", a.Status, a.Last)
	}
	w.health = alert.NewHealth() // another process, which has counted nothing before
	count(began.Add(time.Minute), 2)
	w.pass(5 * time.Minute)
	mustStep(t, w.evaluator(t, nil), 2)
	if a := w.get(t, rates); a.State != alert.Firing || *a.Last.Baseline != 0.01 || *a.Last.Value != 0.02 {
		t.Errorf("%+v %+v", a.Status, a.Last)
	}
	if a := w.get(t, waits); a.State != alert.Firing || a.Problem != alert.NoData {
		t.Errorf("%+v", a.Status)
	}
}

// testProjectsAreServedInTurn: a project with many due alerts does not keep
// another one waiting, and a suspended organization has none.
func testProjectsAreServedInTurn(t *testing.T, w *watch) {
	w.copies(t, w.create(t, above()), 69)
	w.place.ProjectID = newName()
	w.project(t, w.place.ProjectID)
	w.create(t, above())
	due := alert.DueParams{Now: w.clock(), Stored: w.clock(), Passed: w.clock(), Limit: 2}
	store := sqlstore.NewAlerts(w.db)
	first, err := store.Due(t.Context(), due)
	if err != nil || len(first) != 2 || first[0].ProjectID == first[1].ProjectID {
		t.Errorf("%+v %v", first, err)
	}
	w.pass(settle)
	mustStep(t, w.evaluator(t, nil), 71)
	if err := statement(t, w, `UPDATE organizations SET suspended_at = 1`); err != nil {
		t.Fatal(err)
	}
	w.pass(5 * time.Minute)
	mustStep(t, w.evaluator(t, nil), 0)
}

// copies makes alerts like another one, in one transaction.
func (w *watch) copies(t *testing.T, of alert.Place, n int) {
	t.Helper()
	const columns = `project_id, name, source, metric, period, timezone, condition, for_periods, resolve_after, revision, next_start, next_end,
  attempts, state, good_run, bad_run, told, created_at, updated_at`
	var names []string
	for range n {
		names = append(names, "('"+newName()+"')")
	}
	err := statement(t, w, `INSERT INTO alerts (id, `+columns+`) SELECT n.column1, `+columns+` FROM alerts, (VALUES `+
		strings.Join(names, ", ")+`) AS n WHERE id = $1`, of.AlertID)
	if err != nil {
		t.Fatal(err)
	}
}

// testAlertsOfAProjectAreLimited: also when many are made at once.
func testAlertsOfAProjectAreLimited(t *testing.T, w *watch) {
	w.copies(t, w.create(t, above()), alert.MaxAlerts-3)
	var all sync.WaitGroup
	var mu sync.Mutex
	made, refused := 0, 0
	for range 6 {
		all.Go(func() {
			_, err := w.service.Create(t.Context(), w.place, above())
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
			case fault.CodeOf(err) == api.CodeConflict:
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made != 2 || refused != 4 {
		t.Errorf("%d were made, %d refused", made, refused)
	}
}

// testAlertSweep: what is old goes, and all of an alert that was deleted, and
// nothing else.
func testAlertSweep(t *testing.T, w *watch) {
	w.metric = alternating
	kept, gone := w.create(t, above()), w.create(t, above())
	e := w.evaluator(t, nil)
	w.pass(settle + 30*time.Minute)
	drain(t, e)
	before := w.rows(t, "alert_evaluations")
	if err := w.service.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.rows(t, "alerts") != 1 || w.rows(t, "alert_evaluations") != before/2 {
		t.Errorf("%d alerts, %d of %d evaluations", w.rows(t, "alerts"), w.rows(t, "alert_evaluations"), before)
	}
	kinds := w.kinds(t, kept)
	w.pass(41 * 24 * time.Hour)
	if _, err := e.Sweep(t.Context()); err != nil || w.rows(t, "alert_evaluations") != 0 || w.kinds(t, kept) != kinds {
		t.Errorf("%d evaluations, %s (%v)", w.rows(t, "alert_evaluations"), w.kinds(t, kept), err)
	}
	w.pass(140 * 24 * time.Hour)
	if _, err := e.Sweep(t.Context()); err != nil || w.kinds(t, kept) != "" {
		t.Errorf("%s (%v)", w.kinds(t, kept), err)
	}
	w.get(t, kept)
}

// testAlertConstraints: the database refuses what the code never means to
// write.
func testAlertConstraints(t *testing.T, w *watch) {
	at := w.create(t, above())
	const evaluation = `INSERT INTO alert_evaluations (alert_id, period_start, period_end, revision, verdict, problem, value, evaluated_at) VALUES `
	const entry = `INSERT INTO alert_history (id, alert_id, kind, at, reason, period_start, period_end, muted, releases) VALUES `
	const null = "NULL"
	name := newName()
	for _, c := range []struct {
		statement string
		fine      bool
	}{
		{fmt.Sprintf(`%s('%s', 1, 2, 1, 'good', NULL, 1, 1)`, evaluation, at.AlertID), true},
		{fmt.Sprintf(`%s('%s', 1, 3, 2, 'bad', NULL, 1, 1)`, evaluation, at.AlertID), false}, // the same period
		{fmt.Sprintf(`%s('%s', 3, 3, 1, 'good', NULL, 1, 1)`, evaluation, at.AlertID), false},
		{fmt.Sprintf(`%s('%s', 3, 4, 1, 'unknown', %[3]s, %[3]s, 1)`, evaluation, at.AlertID, null), false},
		{fmt.Sprintf(`%s('%s', 3, 4, 1, 'bad', 'no_data', 1, 1)`, evaluation, at.AlertID), false},
		{fmt.Sprintf(`%s('%s', 3, 4, 1, 'bad', %[3]s, %[3]s, 1)`, evaluation, at.AlertID, null), false},
		{fmt.Sprintf(`%s('%s', 3, 4, 1, 'bad', NULL, 1, 1)`, evaluation, name), false}, // of no alert
		{fmt.Sprintf(`%s('%s', '%s', 'fired', 1, NULL, 1, 2, 0, '[]')`, entry, name, at.AlertID), true},
		{fmt.Sprintf(`%s('%s', '%s', 'fired', 1, NULL, 1, 2, 0, '[]')`, entry, name, at.AlertID), false},
		{fmt.Sprintf(`%s('%s', '%s', 'resolved', 1, %[4]s, %[4]s, %[4]s, 0, '[]')`, entry, newName(), at.AlertID, null), false},
		{fmt.Sprintf(`%s('%s', '%s', 'fired', 1, %[4]s, %[4]s, %[4]s, 0, '[]')`, entry, newName(), at.AlertID, null), false},
		{fmt.Sprintf(`%s('%s', '%s', 'exploded', 1, NULL, 1, 2, 0, '[]')`, entry, newName(), at.AlertID), false},
		{`UPDATE alerts SET state = 'firing'`, false},
		{`UPDATE alerts SET told = 1`, false},
		{`UPDATE alerts SET good_run = 1, bad_run = 1`, false},
		{`UPDATE alerts SET next_end = next_start`, false},
		{`UPDATE alerts SET attempts = 1`, false},
		{`UPDATE alerts SET muted_until = 5`, false},
		{`UPDATE alerts SET period = '2h'`, false},
		{`UPDATE alerts SET problem = 'no_data'`, false},
		{`UPDATE alerts SET last_start = next_end, last_end = next_end + 1, last_verdict = 'good', last_at = 1`, false},
	} {
		if err := statement(t, w, c.statement); (err == nil) != c.fine {
			t.Errorf("%s: %v", c.statement, err)
		}
	}
}

// testAlertsAreAudited: an entry for each change by a person, and none for
// what periods do.
func testAlertsAreAudited(t *testing.T, w *watch) {
	w.metric = alternating
	at := w.create(t, above())
	w.pass(settle + 20*time.Minute)
	drain(t, w.evaluator(t, nil))
	rename := func(d *alert.Definition) error { d.Name = "b"; return nil }
	if _, err := w.service.Update(t.Context(), at, rename); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Update(t.Context(), at, func(d *alert.Definition) error { d.Name = ""; return nil }); fault.CodeOf(err) != api.CodeValidationFailed {
		t.Errorf("%v", err)
	}
	entries, err := auditlog.NewService(sqlstore.New(w.db)).List(t.Context(), w.place.OrganizationID, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range entries {
		if e.Object.Kind == auditlog.ObjectAlert && e.Object.ID == at.AlertID && e.Actor.UserID == w.place.Actor.UserID {
			told = append(told, string(e.Action))
		}
	}
	if fmt.Sprint(told) != "[alert.updated alert.created]" {
		t.Errorf("%v", told)
	}
}
