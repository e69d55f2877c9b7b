package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	pgtest.Main(m)
}

const day = 24 * time.Hour

// source is where a database is.
type source struct {
	Dialect     sqlstore.Dialect
	Driver, URL string
}

// newSource makes a new, migrated database with the tables of the tests' work.
func newSource(t testing.TB, d sqlstore.Dialect) source {
	t.Helper()
	s := source{Dialect: d, Driver: "pgx"}
	if d == sqlstore.SQLite {
		s.Driver = "sqlite"
		s.URL = "file:" + filepath.Join(t.TempDir(), "keys.db") +
			"?_journal_mode=WAL&_txlock=immediate&_busy_timeout=60000&_synchronous=FULL"
	} else {
		s.URL = pgtest.New(t)
	}
	db := s.open(t)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(t.Context(), `CREATE TABLE work (unit text NOT NULL)`)
	_, err2 := tx.ExecContext(t.Context(), `CREATE TABLE balance (customer text PRIMARY KEY, amount bigint NOT NULL)`)
	if err := errors.Join(err, err2, sqlstore.Migrate(t.Context(), tx, d), tx.Commit()); err != nil {
		t.Fatal(err)
	}
	return s
}

// open returns a pool of connections.
func (s source) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(s.Driver, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(16)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// fixture is a store in a database of its own.
type fixture struct {
	*sqlstore.Store

	source source
	db     *sql.DB
	clock  *clock
}

// clock is a clock that stands still until it is moved.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.micros.Store(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// newFixture makes a store whose clock stands still. change may set options.
func newFixture(t testing.TB, d sqlstore.Dialect, change ...func(*sqlstore.Options)) *fixture {
	t.Helper()
	f := &fixture{source: newSource(t, d), clock: newClock()}
	f.db = f.source.open(t)
	o := sqlstore.Options{DB: f.db, Dialect: d, Clock: f.clock.now}
	for _, set := range change {
		set(&o)
	}
	var err error
	if f.Store, err = sqlstore.New(o); err != nil {
		t.Fatal(err)
	}
	return f
}

func ownClock(o *sqlstore.Options) { o.Clock = nil }

// engines are the engines by the names of subtests.
var engines = map[string]sqlstore.Dialect{"sqlite": sqlstore.SQLite, "postgres": sqlstore.PostgreSQL}

// onBoth runs a test on both engines.
func onBoth(t *testing.T, test func(t *testing.T, d sqlstore.Dialect)) {
	t.Helper()
	for name, d := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// request makes a request of project p1.
func request(p idempotency.Policy, key, body string) idempotency.Request {
	return idempotency.Request{
		Policy: &p, Scope: "p1", Key: key, Body: []byte(body),
		Facts: []idempotency.Fact{{Name: "method", Value: "charge"}},
	}
}

// ok is an answer that takes every key.
func ok(body string) idempotency.Answer {
	return idempotency.Answer{
		Status: 200, ContentType: "application/json", Body: []byte(body),
		Resource: idempotency.Resource{Kind: "movement", ID: "m-" + body},
	}
}

// unit returns work that leaves a row under a name and answers a.
func unit(ctx context.Context, name string, a idempotency.Answer) sqlstore.Work {
	return func(tx *sql.Tx) (idempotency.Answer, error) {
		_, err := tx.ExecContext(ctx, `INSERT INTO work (unit) VALUES ($1)`, name)
		return a, err
	}
}

// never is work that must not run.
func never(t testing.TB) sqlstore.Work {
	return func(*sql.Tx) (idempotency.Answer, error) {
		t.Error("the work ran")
		return idempotency.Answer{}, errors.New("the work ran")
	}
}

// units counts the rows that work has left under a name.
func (f *fixture) units(t testing.TB, name string) (n int) {
	t.Helper()
	err := f.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM work WHERE unit = $1`, name).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// rows counts the keys that the table holds.
func (f *fixture) rows(t testing.TB) (n int) {
	t.Helper()
	if err := f.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM idempotency_keys`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// begin begins a transaction that is rolled back when the test ends, if it has
// not ended before.
func (f *fixture) begin(t testing.TB, o *sql.TxOptions) *sql.Tx {
	t.Helper()
	tx, err := f.db.BeginTx(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	})
	return tx
}

func commit(t testing.TB, tx *sql.Tx) {
	t.Helper()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// problem fails the test unless err is a refusal for a reason.
func problem(t testing.TB, err error, want idempotency.Problem) idempotency.Error {
	t.Helper()
	e, ok := errors.AsType[*idempotency.Error](err)
	if !ok || e.Problem != want {
		t.Fatalf("got %v, want problem %d", err, want)
	}
	return *e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
