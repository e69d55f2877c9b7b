package account_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// bench is an installation on SQLite, whose announcements can fail.
type bench struct {
	services account.Services
	setup    account.SetupResult
	keys     *credential.Service
	now      time.Time
	announce error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := sqldb.Create(t.Context(), sqldb.Options{Path: t.TempDir() + "/actionpulse.db"}, [16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{now: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)}
	store, clock := sqlstore.New(db), func() time.Time { return b.now }
	b.keys = credential.NewService(credential.Params{
		Store: store, Clock: clock, Random: rand.Reader, Announce: func(context.Context) error { return b.announce },
	})
	b.services = account.NewServices(account.ServicesParams{
		Store: store, Clock: clock, Random: rand.Reader, AfterChange: b.keys.AfterChange,
	})
	first := account.NewService(account.Params{Store: store, Clock: clock, Random: rand.Reader})
	b.setup, err = first.Setup(t.Context(), account.SetupParams{Organization: "o", Project: "p", Email: "a@b"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) login(t *testing.T, email, password string) (account.Tokens, error) {
	t.Helper()
	return b.services.Sessions.Login(t.Context(), account.LoginParams{
		Email: email, Password: password, Client: account.Client{Address: netip.MustParseAddr("192.0.2.1")},
	})
}

func mustFail(t *testing.T, what string, err error, want api.Code) {
	t.Helper()
	if err == nil || fault.CodeOf(err) != want {
		t.Errorf("%s: got %v, want %s", what, err, want)
	}
}

// TestBruteForceIsSlowed: after ten failures not even the right password is
// looked at, until the wait is over; then a success clears the count.
func TestBruteForceIsSlowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range account.DefaultFreeFailures {
		_, err := b.login(t, b.setup.Email, "wrong")
		mustFail(t, "a guess", err, api.CodeInvalidCredentials)
	}
	_, err := b.login(t, b.setup.Email, b.setup.Password)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != api.CodeRateLimited || f.RetryAfter != account.DefaultFailureInterval {
		t.Fatalf("got %v, want rate_limited after %s", err, account.DefaultFailureInterval)
	}
	_, err = b.login(t, "A@B", b.setup.Password)
	mustFail(t, "the email in upper case", err, api.CodeRateLimited)
	b.now = b.now.Add(f.RetryAfter)
	if _, err := b.login(t, b.setup.Email, b.setup.Password); err != nil {
		t.Fatalf("after the wait: %v", err)
	}
	// The address has failed as often, and has no failure left.
	_, err = b.login(t, "nobody@b", "wrong")
	mustFail(t, "a guess", err, api.CodeInvalidCredentials)
	_, err = b.login(t, "nobody@b", "wrong")
	mustFail(t, "one guess too many", err, api.CodeRateLimited)
}

// TestGuessesAtAnInvitationCount: whoever has the link to an invitation of an
// existing user has no more tries at the password than at a login.
func TestGuessesAtAnInvitationCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, err := b.services.Organizations.Create(t.Context(), auditlog.Actor{UserID: b.setup.UserID}, "other")
	if err != nil {
		t.Fatal(err)
	}
	second := account.InviteParams{OrganizationID: b.setup.OrganizationID, Email: "c@d", Role: account.RoleOwner}
	_, token, err := b.services.Invitations.Create(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	accept := account.AcceptParams{Token: token, Password: "correct horse"}
	if _, err := b.services.Invitations.Accept(t.Context(), accept); err != nil {
		t.Fatal(err)
	}
	second.OrganizationID = other.ID
	if _, accept.Token, err = b.services.Invitations.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	guess := accept
	guess.Password = "wrong horse"
	for range account.DefaultFreeFailures {
		_, err := b.services.Invitations.Accept(t.Context(), guess)
		mustFail(t, "a guess", err, api.CodeInvalidCredentials)
	}
	_, err = b.services.Invitations.Accept(t.Context(), accept)
	mustFail(t, "the right password", err, api.CodeRateLimited)
	_, err = b.login(t, "c@d", accept.Password)
	mustFail(t, "at the login", err, api.CodeRateLimited)
	b.now = b.now.Add(account.DefaultFailureInterval)
	if _, err := b.services.Invitations.Accept(t.Context(), accept); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// TestGuessesAtOnceAreNotMore: attempts that are under way count.
func TestGuessesAtOnceAreNotMore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var wg sync.WaitGroup
	var looked, refused atomic.Int64
	for range 40 {
		wg.Go(func() {
			_, err := b.login(t, b.setup.Email, "wrong")
			switch fault.CodeOf(err) {
			case api.CodeInvalidCredentials:
				looked.Add(1)
			case api.CodeRateLimited:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if looked.Load() != account.DefaultFreeFailures || refused.Load() != 30 {
		t.Errorf("%d were looked at and %d refused, want 10 and 30", looked.Load(), refused.Load())
	}
}

// TestRightPasswordsAreNotCounted: whoever logs in often is not slowed.
func TestRightPasswordsAreNotCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range account.DefaultFreeFailures + 2 {
		if _, err := b.login(t, b.setup.Email, b.setup.Password); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range account.DefaultFreeFailures + 2 { // nor is who leaves before it is looked at
		_, err := b.services.Sessions.Login(ctx, account.LoginParams{Email: b.setup.Email, Password: "wrong"})
		if err == nil || fault.CodeOf(err) == api.CodeRateLimited {
			t.Fatalf("got %v", err)
		}
	}
}

// TestChangesWithoutAnAnnouncement: each is made, and says so.
func TestChangesWithoutAnAnnouncement(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tokens, err := b.login(t, b.setup.Email, b.setup.Password)
	if err != nil {
		t.Fatal(err)
	}
	caller, err := b.keys.Authenticate(t.Context(), tokens.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.services.Sessions.Refresh(t.Context(), account.RefreshParams{RefreshToken: tokens.RefreshToken}); err != nil {
		t.Fatal(err)
	}
	b.announce = errors.New("nobody listens")
	owner := auditlog.Actor{UserID: b.setup.UserID}
	steps := []struct {
		what string
		do   func() error
	}{
		{"a suspension", func() error {
			return b.services.Organizations.Suspend(t.Context(), auditlog.Actor{}, b.setup.OrganizationID)
		}},
		{"its end", func() error {
			return b.services.Organizations.Resume(t.Context(), auditlog.Actor{}, b.setup.OrganizationID)
		}},
		{"a password", func() error {
			return b.services.Sessions.ChangePassword(t.Context(), account.ChangePasswordParams{
				Caller: caller, Current: b.setup.Password, New: "another password",
			})
		}},
		{"a reuse", func() error {
			_, err := b.services.Sessions.Refresh(t.Context(), account.RefreshParams{RefreshToken: tokens.RefreshToken})
			return err
		}},
		{"a logout", func() error { return b.services.Sessions.Logout(t.Context(), owner, caller) }},
	}
	for _, s := range steps {
		f, ok := errors.AsType[*fault.Error](s.do())
		if !ok || f.Code != api.CodeUnavailable || f.Details["applied"] != true || f.RetryAfter <= 0 {
			t.Errorf("%s: got %v, want unavailable with applied true", s.what, f)
		}
	}
	_, err = b.keys.Authenticate(t.Context(), tokens.AccessToken)
	mustFail(t, "after the reuse", err, api.CodeUnauthenticated)
	b.announce = nil
	if _, err := b.login(t, b.setup.Email, "another password"); err != nil {
		t.Errorf("the new password: %v", err)
	}
}
