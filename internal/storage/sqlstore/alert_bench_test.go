package sqlstore_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/id"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// settle is how long after its end a period is judged in these tests.
const settle = time.Minute

// watch is a store with one project, an endpoint that wants to hear of alerts,
// and a metric and clocks that tests move.
type watch struct {
	*post

	// number is that of the project in place.
	number  uint32
	place   alert.Place
	service *alert.Service
	health  *alert.Health
	hooks   *webhook.Service
	hook    webhook.Place

	mu sync.Mutex
	// now is the shared clock, stored how far events are stored; zero: now.
	now, stored time.Time
	// metric is what is counted in a window; err, if set, is what reading it
	// ends in.
	metric func(w query.Window) int64
	err    error
	asked  int
}

// began is the start of a period of every length but days.
var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func closeAfter(t *testing.T, db *sqldb.DB) {
	t.Helper()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (w *watch) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *watch) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *watch) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *watch) through() time.Time {
	if w.stored.IsZero() {
		return w.now
	}
	return w.stored
}

// Totals implements alert.Querier.
func (w *watch) Totals(_ context.Context, q query.Totals) ([]int64, time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	values := make([]int64, len(q.Windows))
	for i, window := range q.Windows {
		values[i] = w.metric(window)
	}
	return values, w.through(), w.err
}

// shared is the store's queue with the clock of a test.
type shared struct {
	*sqlstore.Alerts

	now func() time.Time
}

func (s shared) Now(context.Context) (time.Time, error) { return s.now(), nil }

// evaluator is that of one process, on a store of its own.
func (w *watch) evaluator(t *testing.T, change func(*alert.EvaluatorParams)) *alert.Evaluator {
	t.Helper()
	db := w.db
	if w.options.URL != "" {
		var err error
		if db, err = sqldb.Open(t.Context(), w.options); err != nil {
			t.Fatal(err)
		}
		closeAfter(t, db)
	}
	return newEvaluator(db, w, w.health, change)
}

// metrics is what an evaluator reads.
type metrics interface {
	alert.Querier

	clock() time.Time
	storedThrough(ctx context.Context) (time.Time, error)
}

func (w *watch) storedThrough(context.Context) (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.through(), nil
}

func newEvaluator(db *sqldb.DB, m metrics, health *alert.Health, change func(*alert.EvaluatorParams)) *alert.Evaluator {
	store := sqlstore.NewAlerts(db)
	p := alert.EvaluatorParams{
		Store: store, Queue: shared{store, m.clock}, Reader: &alert.Reader{Querier: m, Health: health}, StoredThrough: m.storedThrough,
		Settle: settle, Random: rand.Reader, Told: func() {}, Judged: func(alert.Verdict) {}, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&p)
	}
	return alert.NewEvaluator(p)
}

// above is an alert whose periods of five minutes are bad if anything is
// counted.
func above() alert.Definition {
	return alert.Definition{
		Name: "a", Source: alert.Source{Kind: alert.Trend, Metric: []byte(`{}`)}, Length: alert.FiveMinutes, Timezone: "UTC",
		Condition: alert.Condition{Type: alert.Threshold, Direction: alert.Above}, For: 1, ResolveAfter: 1,
	}
}

func (w *watch) create(t *testing.T, d alert.Definition) alert.Place {
	t.Helper()
	a, err := w.service.Create(t.Context(), w.place, d)
	if err != nil {
		t.Fatal(err)
	}
	at := w.place
	at.AlertID = a.ID
	return at
}

func (w *watch) get(t *testing.T, at alert.Place) alert.Alert {
	t.Helper()
	a, err := w.service.Get(t.Context(), at.ProjectID, at.AlertID)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustStep(t *testing.T, e *alert.Evaluator, want int) {
	t.Helper()
	if n, err := e.Step(t.Context()); err != nil || n != want {
		t.Fatalf("%d alerts have moved on, want %d (%v)", n, want, err)
	}
}

// kinds are the entries of an alert's history, the first first.
func (w *watch) kinds(t *testing.T, at alert.Place) string {
	t.Helper()
	all, err := w.service.History(t.Context(), at.ProjectID, alert.HistoryParams{AlertID: at.AlertID, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range slices.Backward(all) {
		text.WriteString(string(e.Kind) + " ")
	}
	return text.String()
}

// sent are the messages to the endpoint, the first first.
func (w *watch) sent(t *testing.T) []webhook.Delivery {
	t.Helper()
	all, err := w.hooks.Deliveries(t.Context(), w.hook.ProjectID, webhook.ListParams{EndpointID: w.hook.EndpointID, Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

func (w *watch) rows(t *testing.T, table string) int {
	t.Helper()
	var n int
	if err := w.db.Reader().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// alternating is bad in every other period of five minutes.
func alternating(w query.Window) int64 { return w.From / (5 * 60_000) % 2 }

var errBroken = errors.New("the event store is broken")

// statement runs a text in a transaction.
func statement(t *testing.T, w *watch, text string, args ...any) error {
	t.Helper()
	return w.db.WriteTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), text, args...)
		return err
	})
}

func newName() string {
	name, err := id.New(time.Now(), rand.Reader)
	if err != nil {
		panic(fmt.Sprint("no randomness: ", err))
	}
	return name
}
