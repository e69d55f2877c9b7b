package idempotency_test

import (
	"bytes"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// openStore makes a store in a new SQLite file.
func openStore(t testing.TB) *sqlstore.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_txlock=immediate&_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlstore.Migrate(t.Context(), tx, sqlstore.SQLite), tx.Commit()); err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.New(sqlstore.Options{DB: db, Dialect: sqlstore.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// payments is a policy whose first answer is kept and whose errors take no key.
func payments() idempotency.Policy {
	p := idempotency.CreditMovement(0)
	p.Retention.Tombstone = nil
	p.KeepHeaders = []string{"Location", "Link"}
	p.Running.Lease = time.Minute
	return p
}

// service is a server with the middleware around a handler.
type service struct {
	*httptest.Server

	store idempotency.Store
	runs  atomic.Int64
}

// serve starts a service; change adapts its parameters.
func serve(t testing.TB, p idempotency.Policy, h http.HandlerFunc, change ...func(*idempotency.MiddlewareParams)) *service {
	t.Helper()
	s := &service{}
	params := idempotency.MiddlewareParams{
		Policy: p, Scope: func(r *http.Request) (string, error) { return "user-" + r.Header.Get("Authorization"), nil },
		Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&params)
	}
	if params.Store == nil {
		params.Store = openStore(t)
	}
	s.store = params.Store
	keyed, err := idempotency.Middleware(params)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(keyed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		h(w, r)
	})))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(s.Close)
	return s
}

// reply is a response that has been read.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r *reply) replayed() bool { return r.header.Get(idempotency.Replayed) == "true" }

func newRequest(t testing.TB, url, key, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set(idempotency.Header, key)
	}
	return r
}

func send(t testing.TB, r *http.Request) *reply {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return &reply{response.StatusCode, response.Header, string(body)}
}

func (s *service) post(t testing.TB, key, body string) *reply {
	t.Helper()
	return send(t, newRequest(t, s.URL+"/pay", key, body))
}

// expect checks a reply and how often the handler has run by now.
func (s *service) expect(t testing.TB, got *reply, status int, runs int64) {
	t.Helper()
	if got.status != status || s.runs.Load() != runs {
		t.Errorf("got %d %s after %d runs, want %d after %d", got.status, got.body, s.runs.Load(), status, runs)
	}
}

func created(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/payments/1")
	w.Header().Add("Link", "<a>; rel=a")
	w.Header().Add("Link", "<b>; rel=b")
	w.Header().Set("X-Forgotten", "1")
	http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret"})
	w.WriteHeader(http.StatusCreated)
	if _, err := w.Write(bytes.ToUpper(body)); err != nil {
		panic(err)
	}
}

func newServer(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// write says something. A client that has left does not hear it.
func write(w http.ResponseWriter, text string) {
	io.WriteString(w, text) //nolint:errcheck // as the comment says
}

// waitFor waits until a key is in a state.
func (s *service) waitFor(t testing.TB, key string, state idempotency.State) {
	t.Helper()
	for t.Context().Err() == nil {
		rec, _, err := s.store.Find(t.Context(), idempotency.Ref{Scope: "user-", Namespace: "work", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if rec.State == state {
			return
		}
	}
}
