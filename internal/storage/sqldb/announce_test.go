package sqldb

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// heard is what a listener has been told.
type heard struct {
	changed chan struct{}
	lost    chan error
	ended   chan error
}

// listen listens until the test ends or cancel is called.
func listen(t *testing.T, d *DB) (h heard, cancel context.CancelFunc) {
	t.Helper()
	h = heard{changed: make(chan struct{}, 100), lost: make(chan error, 100), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		h.ended <- d.Listen(ctx, func() { h.changed <- struct{}{} }, func(err error) { h.lost <- err })
	}()
	return h, cancel
}

// receive waits for what must come.
func receive[T any](t *testing.T, from <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come", what)
	}
	return got
}

// openTwice returns two stores that are one database.
func openTwice(t *testing.T) (first, second *DB) {
	t.Helper()
	o := Options{URL: pgtest.New(t)}
	first = newStore(t, o)
	second, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
	return first, second
}

func TestPostgresAnnouncementsAreHeard(t *testing.T) {
	t.Parallel()
	first, second := openTwice(t)
	h, cancel := listen(t, second)
	receive(t, h.changed, "the beginning")
	for range 3 {
		if err := first.Announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		receive(t, h.changed, "the announcement")
	}
	cancel()
	if err := receive(t, h.ended, "the end"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want context.Canceled", err)
	}
	if len(h.changed) > 0 || len(h.lost) > 0 {
		t.Errorf("heard %d more, lost %d connections, want none", len(h.changed), len(h.lost))
	}
}

// TestPostgresListenerComesBack: after its connection is killed a listener
// says that something may have been changed, and hears the next announcement.
func TestPostgresListenerComesBack(t *testing.T) {
	t.Parallel()
	first, second := openTwice(t)
	h, _ := listen(t, second)
	receive(t, h.changed, "the beginning")
	var killed int
	err := first.writer.QueryRowContext(t.Context(), `SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND query = 'LISTEN `+channel+`'`).Scan(&killed)
	if err != nil || killed != 1 {
		t.Fatalf("killed %d listeners, %v, want 1", killed, err)
	}
	if err := receive(t, h.lost, "the loss"); err == nil {
		t.Error("a connection was lost without an error")
	}
	receive(t, h.changed, "the second beginning")
	if err := first.Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	receive(t, h.changed, "the announcement")
}

// asked is told of the queries on a connection.
type asked chan string

func (a asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	a <- q.SQL
	return ctx
}

func (a asked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestPostgresSilenceIsNoLoss: a connection on which nothing comes is asked
// whether it lives, as often as it takes, and hears what comes then.
func TestPostgresSilenceIsNoLoss(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	p, ok := d.dialect.(postgresDialect)
	if !ok {
		t.Fatalf("the dialect is %T", d.dialect)
	}
	config := p.config.Copy()
	questions := make(asked, 10_000)
	config.Tracer = questions
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "LISTEN "+channel); err != nil {
		t.Fatal(err)
	}
	receive(t, questions, "LISTEN")
	ended := make(chan error, 1)
	go func() { ended <- hear(t.Context(), conn, time.Millisecond) }()
	for range 3 {
		receive(t, questions, "a question")
	}
	if len(ended) > 0 {
		t.Fatalf("silence ended it: %v", <-ended)
	}
	if err := d.Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ended, "the announcement"); err != nil {
		t.Errorf("got %v, want an announcement", err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSQLiteHasNobodyToTell(t *testing.T) {
	t.Parallel()
	d := newSQLite(t)
	h, cancel := listen(t, d)
	if err := d.Announce(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := receive(t, h.ended, "the end"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want context.Canceled", err)
	}
	if len(h.changed) > 0 || len(h.lost) > 0 {
		t.Errorf("heard %d, lost %d, want none", len(h.changed), len(h.lost))
	}
}
