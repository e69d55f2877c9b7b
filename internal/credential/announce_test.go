package credential_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// announcer counts announcements, and can fail.
type announcer struct {
	n   int
	err error
}

func (a *announcer) announce(ctx context.Context) error {
	a.n++
	return errors.Join(a.err, ctx.Err())
}

func newAnnouncing(t *testing.T) (*bench, *announcer) {
	t.Helper()
	b, a := newBench(t, 0), &announcer{}
	b.service = credential.NewService(credential.Params{
		Store: b.store, Clock: func() time.Time { return b.now }, Random: rand.Reader, Announce: a.announce,
	})
	return b, a
}

func (b *bench) ref(r credential.Record) credential.Ref {
	return credential.Ref{OrganizationID: b.setup.OrganizationID, ID: r.ID}
}

// mustBeApplied checks that an error says that the change is made.
func mustBeApplied(t *testing.T, err error) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != api.CodeUnavailable || f.Details["applied"] != true || f.RetryAfter != credential.DefaultTTL {
		t.Errorf("got %v, want unavailable with applied true, after the TTL", err)
	}
}

func TestAnnounceWhatOthersHaveCached(t *testing.T) {
	t.Parallel()
	b, a := newAnnouncing(t)
	r, _, err := b.service.Create(t.Context(), b.params)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		what string
		do   func() error
		want int
		code api.Code
	}{
		{"a rotation with an overlap", func() error {
			_, _, err := b.service.Rotate(t.Context(), credential.RotateParams{Ref: b.ref(r), Overlap: credential.DefaultTTL})
			return err
		}, 0, ""},
		{"a refusal", func() error {
			return b.service.Revoke(t.Context(), auditlog.Actor{}, credential.Ref{ID: r.ID})
		}, 0, api.CodeNotFound},
		{"a rotation at once", func() error {
			_, _, err := b.service.Rotate(t.Context(), credential.RotateParams{Ref: b.ref(r)})
			return err
		}, 1, ""},
		// The announcement before may have failed: it is made again.
		{"a repeat", func() error { return b.service.Revoke(t.Context(), auditlog.Actor{}, b.ref(r)) }, 2, ""},
	}
	for _, s := range steps {
		if got := codeOf(s.do()); got != s.code || a.n != s.want {
			t.Errorf("%s: got %q and %d announcements, want %q and %d", s.what, got, a.n, s.code, s.want)
		}
	}
}

// TestAnnouncementFails: the change is made, and its caller hears that others
// may not know.
func TestAnnouncementFails(t *testing.T) {
	t.Parallel()
	b, a := newAnnouncing(t)
	r, secret, err := b.service.Create(t.Context(), b.params)
	if err != nil {
		t.Fatal(err)
	}
	b.ask(t, secret, "", 1)
	a.err = errors.New("nobody listens")
	mustBeApplied(t, b.service.Revoke(t.Context(), auditlog.Actor{}, b.ref(r)))
	b.ask(t, secret, api.CodeUnauthenticated, 2)
	a.err = nil
	if err := b.service.Revoke(t.Context(), auditlog.Actor{}, b.ref(r)); err != nil {
		t.Errorf("the repeat: %v", err)
	}
}

func TestAfterChange(t *testing.T) {
	t.Parallel()
	unknown := fault.New(api.CodeUnavailable, "lost").With("applied", "unknown")
	undone := fault.New(api.CodeUnavailable, "refused").With("applied", false)
	other := errors.New("no")
	for what, c := range map[string]struct {
		err  error
		want int
	}{
		"done": {nil, 1}, "perhaps done": {unknown, 1}, "not done": {undone, 0}, "failed": {other, 0},
	} {
		b, a := newAnnouncing(t)
		b.ask(t, b.setup.ServerKey, "", 1)
		left, cancel := context.WithCancel(t.Context())
		cancel() // the caller has left: the announcement is made nevertheless
		if err := b.service.AfterChange(left, c.err); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: got %v, want %v", what, err, c.err)
		}
		if a.n != c.want {
			t.Errorf("%s: %d announcements, want %d", what, a.n, c.want)
		}
		b.ask(t, b.setup.ServerKey, "", 2) // what was cached is forgotten in each case
	}
	if err := newBench(t, 0).service.AfterChange(t.Context(), nil); err != nil {
		t.Errorf("with nobody to tell: %v", err)
	}
}

func TestMintHasTheFormOfSecrets(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{credential.RefreshPrefix, credential.InvitationPrefix} {
		one, err := credential.Mint(prefix, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		two, err := credential.Mint(prefix, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if one == two || len(one) != 40 || one[:4] != prefix {
			t.Errorf("got %q and %q", one, two)
		}
		if kind, ok := credential.Recognize(one); ok {
			t.Errorf("%q passes as a %s", one, kind)
		}
	}
}
