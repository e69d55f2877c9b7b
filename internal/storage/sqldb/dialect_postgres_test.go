package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// TestPostgresRepeatsDeadlocks: two writers that lock two rows in opposite
// order; the one that the database picks as the victim runs again, and both
// succeed.
func TestPostgresRepeatsDeadlocks(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	var met, done sync.WaitGroup
	met.Add(2)
	var runs atomic.Int64
	write := func(first, second string) {
		meet := sync.OnceFunc(func() { met.Done(); met.Wait() })
		err := d.Write(t.Context(), func(q *Queries) error {
			runs.Add(1)
			if _, err := q.NextNumber(t.Context(), first); err != nil {
				return err
			}
			meet() // both hold their first row now
			_, err := q.NextNumber(t.Context(), second)
			return err
		})
		if err != nil {
			t.Errorf("%s, %s: %v", first, second, err)
		}
	}
	done.Go(func() { write(CounterProject, CounterCredential) })
	done.Go(func() { write(CounterCredential, CounterProject) })
	done.Wait()
	if n := runs.Load(); n < 3 {
		t.Errorf("%d runs: there was no deadlock", n)
	}
	for _, name := range []string{CounterProject, CounterCredential} {
		if n, err := d.Read().GetCounter(t.Context(), name); err != nil || n != 2 {
			t.Errorf("%s: %d, %v, want 2", name, n, err)
		}
	}
}

// TestPostgresRepeatsAreBounded: only failures that a repeat can mend are
// repeated, and not for ever.
func TestPostgresRepeatsAreBounded(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	for code, want := range map[string]int{
		serializationFailure: writeAttempts, deadlockDetected: writeAttempts, "23505": 1, "57014": 1,
	} {
		runs := 0
		cause := fmt.Errorf("statement: %w", &pgconn.PgError{Code: code})
		err := d.Write(t.Context(), func(*Queries) error {
			runs++
			return cause
		})
		if runs != want || !errors.Is(err, cause) {
			t.Errorf("%s: %d runs, want %d: %v", code, runs, want, err)
		}
		if want > 1 {
			mustFault(t, err, false)
		}
	}
}

// TestPostgresWritersQueue: those who wait for one row get it one after the
// other, whatever isolation the database or its URL ask for.
func TestPostgresWritersQueue(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("options", "-cdefault_transaction_isolation=serializable")
	address.RawQuery = query.Encode()
	d := newStore(t, Options{URL: address.String()})
	var level string
	if err := d.writer.QueryRowContext(t.Context(), "SHOW transaction_isolation").Scan(&level); err != nil || level != "read committed" {
		t.Errorf("isolation %q, %v", level, err)
	}
	var runs atomic.Int64
	var all sync.WaitGroup
	const writers = 40
	for range writers {
		all.Go(func() {
			err := d.Write(t.Context(), func(q *Queries) error {
				runs.Add(1)
				_, err := q.NextNumber(t.Context(), CounterProject)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := runs.Load(); n != writers {
		t.Errorf("%d runs of %d writers", n, writers)
	}
}

// TestPostgresLosesTheConnection: when the connection is gone at COMMIT, the
// answer says that nobody knows; the next write takes another connection.
func TestPostgresLosesTheConnection(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	err := inTx(t.Context(), d.writer, func(tx *sql.Tx) error {
		var pid int
		if _, err := New(tx).NextNumber(t.Context(), CounterProject); err != nil {
			return err
		}
		if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		// The second parameter makes it wait, in milliseconds, until it is gone.
		_, err := d.reader.ExecContext(t.Context(), "SELECT pg_terminate_backend($1, 30000)", pid)
		return err
	})
	mustFault(t, err, "unknown")
	for want := range int64(3) {
		err := d.Write(t.Context(), func(q *Queries) error {
			n, err := q.NextNumber(t.Context(), CounterProject)
			if n != want+1 {
				t.Errorf("number %d, want %d", n, want+1)
			}
			return err
		})
		if err != nil {
			t.Errorf("the next write: %v", err)
		}
	}
}

func TestPostgresRefusesWeakSettings(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("synchronous_commit", "off")
	u.RawQuery = query.Encode()
	o := Options{URL: u.String()}
	if db, err := Create(t.Context(), o, [16]byte{}); err == nil {
		t.Error("opened with synchronous_commit off")
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	query.Del("synchronous_commit")
	u.RawQuery = query.Encode()
	if _, err := Open(t.Context(), Options{URL: u.String()}); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v, want ErrMissing: the refusal left something behind", err)
	}
	if _, err := Open(t.Context(), Options{URL: "postgres://nobody@127.0.0.1:1/none?connect_timeout=5"}); err == nil {
		t.Error("opened without a server")
	}
}
