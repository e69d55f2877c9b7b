package sqlstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// process is what one process has of a store that it shares.
type process struct {
	store *sqlstore.Store
	keys  *credential.Service
	heard chan struct{}
}

// newProcess has its cache forget what it must, and signals that. Its TTL is
// so long that nothing else makes it ask again.
func newProcess(t *testing.T, db *sqldb.DB) *process {
	t.Helper()
	p := &process{store: sqlstore.New(db), heard: make(chan struct{}, 100)}
	p.keys = credential.NewService(credential.Params{
		Store: p.store, Clock: time.Now, Random: rand.Reader, TTL: time.Hour, Announce: db.Announce,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- db.Listen(ctx, func() { p.keys.Forget(); p.heard <- struct{}{} }, func(err error) { t.Error(err) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the listener ended with %v, want context.Canceled", err)
		}
	})
	p.wait(t)
	return p
}

func (p *process) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.heard:
	case <-time.After(time.Minute):
		t.Fatal("nothing was heard")
	}
}

func (p *process) mustAnswer(t *testing.T, secret string, want api.Code) {
	t.Helper()
	var got api.Code
	if _, err := p.keys.Authenticate(t.Context(), secret); err != nil {
		got = fault.CodeOf(err)
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPostgreSQLChangesShowInOtherProcesses: what one process changes, another
// that has it in its cache sees as soon as it hears of it.
func TestPostgreSQLChangesShowInOtherProcesses(t *testing.T) {
	t.Parallel()
	o := storagetest.PostgreSQL(t)
	open := func(open func() (*sqldb.DB, error)) *sqldb.DB {
		db, err := open()
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
	first := newProcess(t, open(func() (*sqldb.DB, error) { return sqldb.Create(t.Context(), o, storagetest.Identity) }))
	second := newProcess(t, open(func() (*sqldb.DB, error) { return sqldb.Open(t.Context(), o) }))
	setup, err := account.NewService(account.Params{Store: first.store, Clock: time.Now, Random: rand.Reader}).
		Setup(t.Context(), account.SetupParams{Organization: "o", Project: "p", Email: "a@b"})
	if err != nil {
		t.Fatal(err)
	}
	services := account.NewServices(account.ServicesParams{
		Store: first.store, Clock: time.Now, Random: rand.Reader, AfterChange: first.keys.AfterChange,
	})
	key, err := first.keys.Authenticate(t.Context(), setup.ServerKey)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := services.Sessions.Login(t.Context(), account.LoginParams{Email: setup.Email, Password: setup.Password})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := first.keys.Authenticate(t.Context(), tokens.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	owner := auditlog.Actor{UserID: setup.UserID}
	for _, c := range []struct {
		what, secret  string
		change        func() error
		before, after api.Code
	}{
		{"a suspension", setup.BrowserToken, func() error {
			return services.Organizations.Suspend(t.Context(), auditlog.Actor{}, setup.OrganizationID)
		}, "", api.CodePaymentRequired},
		{"its end", setup.BrowserToken, func() error {
			return services.Organizations.Resume(t.Context(), auditlog.Actor{}, setup.OrganizationID)
		}, api.CodePaymentRequired, ""},
		{"a revocation", setup.ServerKey, func() error {
			return first.keys.Revoke(t.Context(), owner, credential.Ref{OrganizationID: key.OrganizationID, ID: key.ID})
		}, "", api.CodeUnauthenticated},
		{"a logout", tokens.AccessToken, func() error {
			return services.Sessions.Logout(t.Context(), owner, caller)
		}, "", api.CodeUnauthenticated},
	} {
		second.mustAnswer(t, c.secret, c.before)
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		second.wait(t)
		second.mustAnswer(t, c.secret, c.after)
	}
}
