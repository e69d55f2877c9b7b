package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// PostgreSQL ends the connection before COMMIT was sent: nothing has happened,
// and nothing is said to be unknown.
func TestCutBeforeCommit(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"claimed", "worked", "completed"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, sqlstore.PostgreSQL)
			r := request(idempotency.CreditMovement(day), "k", "{}")
			pid := 0
			f.SetStep(func(step string) {
				if step == at && pid != 0 {
					f.terminate(t, pid)
				}
			})
			work := func(tx *sql.Tx) (idempotency.Answer, error) {
				return ok("1"), record(t.Context(), tx, "k")
			}
			tx := f.begin(t, nil)
			must(t, tx.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
			_, err := f.Do(t.Context(), tx, r, work)
			if err == nil || tx.Commit() == nil {
				t.Error("a transaction outlived its connection")
			}
			if sqlstore.IsUnknown(err) || f.units(t, "k") != 0 || f.rows(t) != 0 {
				t.Errorf("%v, %d units, %d keys", err, f.units(t, "k"), f.rows(t))
			}
			pid = 0
			if again, err := f.Run(t.Context(), r, work); err != nil || again.Replayed || f.units(t, "k") != 1 {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
}

// terminate ends a connection and waits until it is gone.
func (f *fixture) terminate(t *testing.T, pid int) {
	t.Helper()
	_, err := f.db.ExecContext(context.WithoutCancel(t.Context()), `SELECT pg_terminate_backend($1, 30000)`, pid)
	must(t, err)
}

// PostgreSQL ends the connection while it commits: Run asks again.
func TestCutAtCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL)
	_, err := f.db.ExecContext(t.Context(), `CREATE SEQUENCE commits;
CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('commits') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON work DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cut()`)
	must(t, err)
	r := request(idempotency.CreditMovement(day), "k", "{}")
	runs := 0
	result, err := f.Run(t.Context(), r, func(tx *sql.Tx) (idempotency.Answer, error) {
		runs++
		return ok("1"), record(t.Context(), tx, "k")
	})
	if err != nil || result.Replayed || runs != 2 || f.units(t, "k") != 1 {
		t.Errorf("%+v, %v after %d runs, %d units", result, err, runs, f.units(t, "k"))
	}
}

// cutConn loses the connection instead of delivering the answer to a COMMIT.
type cutConn struct {
	net.Conn

	armed *atomic.Bool
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if bytes.Contains(b[:n], []byte("COMMIT\x00")) && c.armed.CompareAndSwap(true, false) {
		clear(b)
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// The COMMIT has landed and its answer is lost with the connection: Run finds
// its own work.
func TestCutAfterCommit(t *testing.T) {
	t.Parallel()
	source := newSource(t, sqlstore.PostgreSQL)
	config, err := pgx.ParseConfig(source.URL)
	must(t, err)
	var armed atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &cutConn{Conn: conn, armed: &armed}, err
	}
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { must(t, db.Close()) })
	s, err := sqlstore.New(sqlstore.Options{DB: db, Dialect: sqlstore.PostgreSQL})
	must(t, err)
	f := &fixture{Store: s, source: source, db: db}
	r := request(idempotency.CreditMovement(day), "k", "{}")
	runs := 0
	armed.Store(true)
	result, err := s.Run(t.Context(), r, func(tx *sql.Tx) (idempotency.Answer, error) {
		runs++
		return ok("1"), record(t.Context(), tx, "k")
	})
	if err != nil || result.Replayed || runs != 1 || f.units(t, "k") != 1 || armed.Load() {
		t.Errorf("%+v, %v after %d runs, %d units, cut %v", result, err, runs, f.units(t, "k"), !armed.Load())
	}
	armed.Store(true)
	c := f.claim(t, request(idempotency.IETF(day), "k", "{}"), idempotency.Fresh)
	if c.Owner.Epoch != 1 || armed.Load() {
		t.Errorf("%+v, cut %v", c, !armed.Load())
	}
	must(t, s.Complete(t.Context(), request(idempotency.IETF(day), "k", "{}"), c.Owner, ok("1")))
}

// A COMMIT that PostgreSQL refuses for a constraint has a known outcome: the
// work is not tried again.
func TestRefusedCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL)
	_, err := f.db.ExecContext(t.Context(), `CREATE TABLE child (customer text REFERENCES balance DEFERRABLE INITIALLY DEFERRED)`)
	must(t, err)
	runs := 0
	_, err = f.Run(t.Context(), request(idempotency.CreditMovement(day), "k", "{}"), func(tx *sql.Tx) (idempotency.Answer, error) {
		runs++
		_, err := tx.ExecContext(t.Context(), `INSERT INTO child VALUES ('nobody')`)
		return ok("1"), err
	})
	if err == nil || sqlstore.IsUnknown(err) || runs != 1 || f.rows(t) != 0 {
		t.Errorf("%v after %d runs, %d keys", err, runs, f.rows(t))
	}
}
