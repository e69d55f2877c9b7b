package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// engine opens a new, migrated database.
type engine func(t testing.TB) (*sql.DB, sqlstore.Dialect)

func engines() map[string]engine {
	return map[string]engine{"sqlite": openSQLite, "postgres": openPostgreSQL}
}

func openSQLite(t testing.TB) (*sql.DB, sqlstore.Dialect) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.db")
	db := open(t, "sqlite", "file:"+path+"?_journal_mode=WAL&_txlock=immediate&_busy_timeout=10000&_synchronous=FULL")
	migrate(t, db, sqlstore.SQLite)
	return db, sqlstore.SQLite
}

func openPostgreSQL(t testing.TB) (*sql.DB, sqlstore.Dialect) {
	t.Helper()
	db := open(t, "pgx", pgtest.New(t))
	migrate(t, db, sqlstore.PostgreSQL)
	return db, sqlstore.PostgreSQL
}

func open(t testing.TB, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func migrate(t testing.TB, db *sql.DB, d sqlstore.Dialect) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlstore.Migrate(t.Context(), tx, d), tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

func newStore(t testing.TB, open engine) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db, dialect := open(t)
	s, err := sqlstore.New(sqlstore.Options{DB: db, Dialect: dialect})
	if err != nil {
		t.Fatal(err)
	}
	return s, db
}

func TestDoOnce(t *testing.T) {
	t.Parallel()
	for name, open := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t, open)
			p := idempotency.CreditMovement(0)
			ran := 0
			work := func(*sql.Tx) (idempotency.Answer, error) {
				ran++
				return idempotency.Answer{Status: 200, ContentType: "application/json", Body: []byte(`{"n":1}`),
					Resource: idempotency.Resource{Kind: "topup", ID: "m1"}}, nil
			}
			r := idempotency.Request{Policy: &p, Scope: "p1", Key: "k", Body: []byte(`{"a":1}`),
				Facts: []idempotency.Fact{{Name: "method", Value: "topup"}}}
			first, err := s.Run(t.Context(), r, work)
			if err != nil || first.Replayed {
				t.Fatalf("first: %+v, %v", first, err)
			}
			again, err := s.Run(t.Context(), r, work)
			if err != nil || !again.Replayed || string(again.Answer.Body) != `{"n":1}` || ran != 1 {
				t.Fatalf("again: %+v, %v, ran %d", again, err, ran)
			}
			r.Body = []byte(`{"a": 1}`)
			_, err = s.Run(t.Context(), r, work)
			e, ok := errors.AsType[*idempotency.Error](err)
			if !ok || e.Problem != idempotency.Mismatch || !e.SameJSON || len(e.Differs) != 1 || e.Differs[0] != "body" {
				t.Fatalf("other body: %v", err)
			}
			refused := errors.New("no")
			r.Key = "k2"
			if _, err := s.Run(t.Context(), r, func(*sql.Tx) (idempotency.Answer, error) {
				return idempotency.Answer{}, refused
			}); !errors.Is(err, refused) {
				t.Fatal(err)
			}
			if _, found, err := s.Find(context.Background(), r.Ref()); found || err != nil {
				t.Fatalf("a refusal left the key: %v %v", found, err)
			}
			if n, err := s.Sweep(t.Context()); n != 0 || err != nil {
				t.Fatalf("sweep %d %v", n, err)
			}
		})
	}
}
