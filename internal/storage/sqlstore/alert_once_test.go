package sqlstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/release"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// mustBeOnce: every period of the alerts was judged once and without a gap,
// and every change of each was told once, in turn.
func (w *watch) mustBeOnce(t *testing.T, places []alert.Place, periods int) {
	t.Helper()
	if n := w.rows(t, "alert_evaluations"); n != periods*len(places) {
		t.Errorf("%d evaluations, want %d of each of %d alerts", n, periods, len(places))
	}
	told, ids := map[string][]string{}, map[string]bool{}
	for _, d := range w.sent(t) {
		var body struct {
			Type string
			Data struct{ Alert struct{ ID string } }
		}
		if err := json.Unmarshal(d.Message.Body, &body); err != nil {
			t.Fatal(err)
		}
		if ids[d.Message.ID] {
			t.Errorf("the message %s is delivered twice", d.Message.ID)
		}
		ids[d.Message.ID] = true
		told[body.Data.Alert.ID] = append(told[body.Data.Alert.ID], strings.TrimPrefix(body.Type, "alert."))
	}
	for _, at := range places {
		if got, want := strings.Join(told[at.AlertID], " ")+" ", w.kinds(t, at); got != want || got == " " {
			t.Errorf("told %s\nhistory %s", got, want)
		}
		for i, kind := range told[at.AlertID] {
			if want := []string{"fired", "resolved"}[i%2]; kind != want {
				t.Errorf("message %d of an alert says %s", i, kind)
			}
		}
		if n := len(told[at.AlertID]); n < periods-1 {
			t.Errorf("%d messages about %d periods that differ", n, periods)
		}
	}
}

// testEvaluatorsShareTheWork: of two processes on one database, each period is
// judged by one, and each change is told once.
func testEvaluatorsShareTheWork(t *testing.T, w *watch) {
	w.metric = alternating
	var places []alert.Place
	for range 2 {
		places = append(places, w.create(t, above()))
	}
	one, two := w.evaluator(t, nil), w.evaluator(t, nil)
	const rounds, each = 3, 4
	w.pass(settle - 5*time.Minute) // the first period, which was over at the creation, comes with the first round
	for range rounds {
		w.pass(each * 5 * time.Minute)
		var both sync.WaitGroup
		for _, e := range []*alert.Evaluator{one, two, one, two} {
			both.Go(func() {
				if _, err := e.Step(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		drain(t, one) // what one had left to the other, who had left it to the one
	}
	w.mustBeOnce(t, places, rounds*each)
}

// drain has an evaluator do what there is left to do.
func drain(t *testing.T, e *alert.Evaluator) {
	t.Helper()
	for n := 1; n > 0; {
		var err error
		if n, err = e.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What a child is told by its environment.
const (
	alertChildURL  = "ALERT_TEST_URL"
	alertChildKill = "ALERT_TEST_KILL"
	alertChildNow  = "ALERT_TEST_NOW"
)

// doomed is a process that dies after it has read a metric, or after its
// transaction has been committed.
type doomed struct {
	*sqlstore.Alerts

	now   time.Time
	point string
}

func (d *doomed) die(point string) {
	if d.point == point {
		fmt.Println("dying") // whoever has started it knows that it came here
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (d *doomed) Now(context.Context) (time.Time, error)           { return d.now, nil }
func (d *doomed) clock() time.Time                                 { return d.now }
func (d *doomed) storedThrough(context.Context) (time.Time, error) { return d.now, nil }

func (d *doomed) Totals(_ context.Context, q query.Totals) ([]int64, time.Time, error) {
	d.die("read")
	return []int64{alternating(q.Windows[0])}, d.now, nil
}

func (d *doomed) Change(ctx context.Context, p alert.ChangeParams) (alert.Alert, bool, error) {
	step := p.Step
	p.Step = func(s *alert.Step) error {
		err := step(s)
		d.die("stepped")
		return err
	}
	a, found, err := d.Alerts.Change(ctx, p)
	if err == nil && found {
		d.die("committed")
	}
	return a, found, err
}

func alertChild() error {
	db, err := sqldb.Open(context.Background(), sqldb.Options{URL: os.Getenv(alertChildURL)})
	if err != nil {
		return err
	}
	d := &doomed{Alerts: sqlstore.NewAlerts(db), point: os.Getenv(alertChildKill)}
	if d.now, err = time.Parse(time.RFC3339, os.Getenv(alertChildNow)); err == nil {
		_, err = newEvaluator(db, d, alert.NewHealth(), func(p *alert.EvaluatorParams) { p.Store, p.Queue = d, d }).Step(context.Background())
	}
	return err
}

// testEvaluatorIsKilled: a process that dies between its query and
// its transaction, within that, or before anything is sent, leaves each period
// to be judged once, and each message to be sent.
func testEvaluatorIsKilled(t *testing.T, w *watch) {
	w.metric = alternating
	places := []alert.Place{w.create(t, above()), w.create(t, above())}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	survivor := w.evaluator(t, nil)
	w.pass(settle)
	const periods = 3
	for i := range periods {
		point := []string{"read", "stepped", "committed"}[i%3]
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Env = append(os.Environ(), alertChildURL+"="+w.options.URL, alertChildKill+"="+point, alertChildNow+"="+w.clock().Format(time.RFC3339))
		if out, err := cmd.Output(); err == nil || string(out) != "dying\n" {
			t.Fatalf("at %s: %q %v", point, out, err)
		}
		if _, err := survivor.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Minute)
	}
	w.mustBeOnce(t, places, periods)
	for _, d := range w.sent(t) {
		if d.State != webhook.Pending {
			t.Errorf("%+v", d)
		}
	}
}

// testAlertChangesWhileItIsJudged: a judgement of what is no longer watched
// does not count, and one of an alert that is gone neither.
func testAlertChangesWhileItIsJudged(t *testing.T, w *watch) {
	w.metric = func(query.Window) int64 { return 1 }
	at, gone := w.create(t, above()), w.create(t, above())
	w.pass(settle)
	e := w.evaluator(t, func(p *alert.EvaluatorParams) {
		p.Reader = &alert.Reader{Health: w.health, Querier: meanwhile{w, func() {
			_, err := w.service.Update(context.Background(), at, func(d *alert.Definition) error {
				d.Condition.Value += 7
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if err := w.service.Delete(context.Background(), gone); err != nil && !strings.Contains(err.Error(), "no such alert") {
				t.Error(err)
			}
		}}}
	})
	mustStep(t, e, 0)
	if a := w.get(t, at); a.State != alert.OK || a.Revision < 2 || a.Last != nil || w.rows(t, "alert_evaluations") != 0 {
		t.Errorf("%+v, %d evaluations", a, w.rows(t, "alert_evaluations"))
	}
	mustStep(t, w.evaluator(t, nil), 1)
	if a := w.get(t, at); a.Last == nil || a.Last.Verdict != alert.Good {
		t.Errorf("%+v", a)
	}
	if sent := w.sent(t); len(sent) != 0 {
		t.Errorf("%s was sent", sent[0].Message.Body)
	}
}

// meanwhile has something happen while a metric is read.
type meanwhile struct {
	*watch

	happens func()
}

func (m meanwhile) Totals(ctx context.Context, q query.Totals) ([]int64, time.Time, error) {
	values, stored, err := m.watch.Totals(ctx, q)
	m.happens()
	return values, stored, err
}

// testReleasesBesideAnAlert: those from a day before the period until its end,
// the latest first, at most ten, in the message and in the history alike.
func testReleasesBesideAnAlert(t *testing.T, w *watch) {
	store := sqlstore.New(w.db)
	period := above()
	p := period.At(began.Add(-time.Minute))
	mark := func(version string, ts time.Time) {
		m := release.Marker{
			ID: newName(), ProjectID: w.place.ProjectID, Source: release.Manual, CreatedAt: ts,
			Content: release.Content{Version: version, Environment: "production", TS: ts, Commit: "3b1ac44", URL: "https://ci.example/" + version},
		}
		if err := store.CreateMarker(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	mark("too early", p.Start.Add(-24*time.Hour-time.Microsecond))
	mark("too late", p.End)
	mark("left out", p.Start.Add(-24*time.Hour))
	for i := range 10 {
		mark(fmt.Sprint(i), p.End.Add(-time.Duration(i)*time.Hour-time.Microsecond))
	}
	w.metric = func(query.Window) int64 { return 1 }
	at := w.create(t, above())
	w.pass(settle)
	mustStep(t, w.evaluator(t, nil), 1)
	history, err := w.service.History(t.Context(), at.ProjectID, alert.HistoryParams{AlertID: at.AlertID, Limit: 10})
	if err != nil || len(history) != 1 || len(history[0].Releases) != alert.MaxReleases {
		t.Fatalf("%+v %v", history, err)
	}
	var body struct {
		Data struct {
			Releases []struct{ Version, Environment, Commit, URL string }
		}
	}
	sent := w.sent(t)
	if err := json.Unmarshal(sent[0].Message.Body, &body); err != nil || len(sent) != 1 {
		t.Fatal(err, len(sent))
	}
	for i, r := range history[0].Releases {
		if r.Version != fmt.Sprint(i) || body.Data.Releases[i].Version != r.Version || body.Data.Releases[i].Commit != "3b1ac44" || body.Data.Releases[i].URL != r.URL {
			t.Errorf("release %d is %+v, %+v", i, r, body.Data.Releases[i])
		}
	}
}
