package credential_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
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

// watched is a store that counts look-ups, and can fail or pause them.
type watched struct {
	credential.Store

	finds atomic.Int64
	fail  atomic.Pointer[error]
	// found, if set, runs when a look-up has its answer and before that is
	// returned.
	found func()
}

func (w *watched) FindCredential(ctx context.Context, hash credential.Hash) (credential.Record, bool, error) {
	w.finds.Add(1)
	if err := w.fail.Load(); err != nil {
		return credential.Record{}, false, *err
	}
	r, ok, err := w.Store.FindCredential(ctx, hash)
	if w.found != nil {
		w.found()
	}
	return r, ok, err
}

type bench struct {
	store   *watched
	service *credential.Service
	now     time.Time
	setup   account.SetupResult
	params  credential.CreateParams // of a server key
}

func newBench(t testing.TB, cacheSize int) *bench {
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
	store := sqlstore.New(db)
	b := &bench{store: &watched{Store: store}, now: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return b.now }
	b.service = credential.NewService(credential.Params{
		Store: b.store, Clock: clock, Random: rand.Reader, CacheSize: cacheSize,
	})
	accounts := account.NewService(account.Params{Store: store, Clock: clock, Random: rand.Reader})
	b.setup, err = accounts.Setup(t.Context(), account.SetupParams{Organization: "o", Project: "p", Email: "a@b"})
	if err != nil {
		t.Fatal(err)
	}
	b.params = credential.CreateParams{
		Kind: credential.Server, Name: "n", OrganizationID: b.setup.OrganizationID, ProjectID: b.setup.Project.ID,
	}
	return b
}

// ask authenticates a secret and checks the code and how many look-ups have
// been made since the beginning.
func (b *bench) ask(t *testing.T, secret string, want api.Code, finds int64) {
	t.Helper()
	_, err := b.service.Authenticate(t.Context(), secret)
	if got := codeOf(err); got != want {
		t.Errorf("got %v, want %q", err, want)
	}
	if n := b.store.finds.Load(); n != finds {
		t.Errorf("%d look-ups, want %d", n, finds)
	}
}

func codeOf(err error) api.Code {
	if err == nil {
		return ""
	}
	return fault.CodeOf(err)
}

func TestAuthenticateAsksOncePerTTL(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	for range 3 {
		b.ask(t, b.setup.ServerKey, "", 1)
		b.now = b.now.Add(credential.DefaultTTL/2 - 1) // being asked does not prolong it
		if b.now.Nanosecond() > int(credential.DefaultTTL)-10 {
			break
		}
	}
	b.now = b.now.Add(3)
	b.ask(t, b.setup.ServerKey, "", 2)
	b.ask(t, "unknown", api.CodeUnauthenticated, 3)
	b.ask(t, "unknown", api.CodeUnauthenticated, 3)
}

func TestAuthenticateDoesNotAskInVain(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	b.ask(t, "", api.CodeUnauthenticated, 0)
	b.ask(t, strings.Repeat("x", 513), api.CodeUnauthenticated, 0)
	b.ask(t, strings.Repeat("x", 512), api.CodeUnauthenticated, 1)
	b.ask(t, "\x00\xff", api.CodeUnauthenticated, 2)
}

// TestFloodDoesNotDriveOutKeys: random secrets neither cost the keys in use
// their place nor are all remembered.
func TestFloodDoesNotDriveOutKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8)
	b.ask(t, b.setup.ServerKey, "", 1)
	for i := range 100 {
		b.ask(t, rand.Text(), api.CodeUnauthenticated, int64(2+i))
	}
	b.ask(t, b.setup.ServerKey, "", 101)
}

func TestAuthenticateWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	b.ask(t, b.setup.ServerKey, "", 1)
	cause := errors.New("disk on fire")
	b.store.fail.Store(&cause)
	b.ask(t, b.setup.ServerKey, "", 1) // known for now
	b.now = b.now.Add(credential.DefaultTTL)
	_, err := b.service.Authenticate(t.Context(), b.setup.ServerKey)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != api.CodeUnavailable || f.RetryAfter <= 0 || !errors.Is(err, cause) || strings.Contains(f.Message, "fire") {
		t.Errorf("got %v, want unavailable without the cause in its message", err)
	}
	b.store.fail.Store(nil)
	b.ask(t, b.setup.ServerKey, "", 3) // the failure is not remembered
}

// TestRevokeDuringLookUp: an answer that was read before the revocation must
// not outlive it in the cache.
func TestRevokeDuringLookUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	r, secret, err := b.service.Create(t.Context(), b.params)
	if err != nil {
		t.Fatal(err)
	}
	b.store.found = sync.OnceFunc(func() {
		if err := b.service.Revoke(t.Context(), auditlog.Actor{}, credential.Ref{OrganizationID: r.OrganizationID, ID: r.ID}); err != nil {
			t.Error(err)
		}
	})
	b.ask(t, secret, "", 1) // asked before it was revoked
	b.ask(t, secret, api.CodeUnauthenticated, 2)
}

// TestImportAfterRefusal: a key that was refused before it was imported works
// at once.
func TestImportAfterRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	b.ask(t, "old-key", api.CodeUnauthenticated, 1)
	if _, err := b.service.ImportLegacy(t.Context(), "old-key", b.params); err != nil {
		t.Fatal(err)
	}
	b.ask(t, "old-key", "", 2)
}

func TestImportLegacyRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	for _, secret := range []string{"", " a", "a\n", "a\x00b", "\xff", strings.Repeat("x", 513)} {
		if _, err := b.service.ImportLegacy(t.Context(), secret, b.params); codeOf(err) != api.CodeValidationFailed {
			t.Errorf("%q: got %v, want validation_failed", secret, err)
		}
	}
}

// TestAuthenticateConcurrently lets the race detector see the cache at work.
func TestAuthenticateConcurrently(t *testing.T) {
	t.Parallel()
	b := newBench(t, 4)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if i == 0 {
					if _, _, err := b.service.Create(t.Context(), b.params); err != nil {
						t.Error(err)
					}
					continue
				}
				if _, err := b.service.Authenticate(t.Context(), b.setup.BrowserToken); err != nil {
					t.Error(err)
				}
				if _, err := b.service.Authenticate(t.Context(), rand.Text()); codeOf(err) != api.CodeUnauthenticated {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkAuthenticate(b *testing.B) {
	h := newBench(b, 0)
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.service.Authenticate(b.Context(), h.setup.ServerKey); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unknown", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.service.Authenticate(b.Context(), rand.Text()); err == nil {
				b.Fatal("accepted")
			}
		}
	})
	b.Run("expired", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.now = h.now.Add(credential.DefaultTTL)
			if _, err := h.service.Authenticate(b.Context(), h.setup.ServerKey); err != nil {
				b.Fatal(err)
			}
		}
	})
}
