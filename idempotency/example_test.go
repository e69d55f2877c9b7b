package idempotency_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// openDatabase opens a database with the tables of the examples and of the
// keys, and returns what closes it. A real one is a file:
// "file:shop.db?_journal_mode=WAL&_txlock=immediate".
func openDatabase(ctx context.Context) (*sql.DB, *sqlstore.Store, func()) {
	db, err := sql.Open("sqlite", "file::memory:?_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // on SQLite one connection does all the writing
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, made := tx.ExecContext(ctx, `CREATE TABLE balance (customer TEXT PRIMARY KEY, amount INTEGER NOT NULL CHECK (amount >= 0))`)
	_, filled := tx.ExecContext(ctx, `INSERT INTO balance VALUES ('ada', 100)`)
	err = errors.Join(made, filled, sqlstore.Migrate(ctx, tx, sqlstore.SQLite), tx.Commit())
	if err != nil {
		log.Fatal(err)
	}
	keys, err := sqlstore.New(sqlstore.Options{DB: db, Dialect: sqlstore.SQLite})
	if err != nil {
		log.Fatal(err)
	}
	return db, keys, func() {
		if err := db.Close(); err != nil {
			log.Print(err)
		}
	}
}

// respond is how the handlers of the examples answer.
func respond(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	if _, err := io.WriteString(w, text); err != nil {
		log.Print(err)
	}
}

// post sends a request to a handler and prints the answer.
func post(h http.Handler, key, body string) {
	r := httptest.NewRequestWithContext(context.Background(), "POST", "/emails", strings.NewReader(body))
	r.Header.Set("Authorization", "ada")
	r.Header.Set(idempotency.Header, key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer, err := io.ReadAll(w.Body)
	if err != nil {
		log.Fatal(err)
	}
	replayed := ""
	if w.Header().Get(idempotency.Replayed) == "true" {
		replayed = " (replayed)"
	}
	fmt.Printf("%d %s%s\n", w.Code, strings.TrimSpace(string(answer)), replayed)
}
