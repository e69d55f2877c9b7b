package storagetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/credential"
)

func testSweep(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *house){
		"what is long dead goes, all else stays": testSweepKeeps,
		"more than one group goes":               testSweepGroups,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLivedIn(t, open))
		})
	}
}

const week = 7 * 24 * time.Hour

func (h *house) sweep(t testing.TB, want int) {
	t.Helper()
	n, err := h.services.Sweeper.Sweep(t.Context())
	if err != nil || n != want {
		t.Errorf("swept %d, %v, want %d", n, err, want)
	}
}

func testSweepKeeps(t *testing.T, h *house) {
	first := h.ownerLogin(t)
	p := h.params(credential.Server)
	p.Lifetime = time.Hour
	key, _ := h.create(t, p) // keys stay, also when they have ended
	h.now = h.now.Add(time.Hour + week)
	h.mustAnswer(t, first.AccessToken, api.CodeTokenExpired)
	h.sweep(t, 0) // a week ago, not more
	h.now = h.now.Add(time.Microsecond)
	h.sweep(t, 1)                                            // the session's access token; that of the setup lasts a day
	h.mustAnswer(t, first.AccessToken, api.CodeTokenExpired) // the cache remembers
	h.now = h.now.Add(credential.DefaultTTL)
	h.mustAnswer(t, first.AccessToken, api.CodeUnauthenticated)
	second, err := h.refresh(t, first.RefreshToken) // the session goes on
	must(t, err)
	h.now = h.now.Add(account.RefreshLifetime + week - time.Hour)
	h.sweep(t, 3) // both access tokens, and the spent refresh token
	if n := count(t, h.raw, "SELECT COUNT(*) FROM sessions"); n != 1 {
		t.Errorf("%d sessions, want 1: it has a token left", n)
	}
	h.now = h.now.Add(2 * time.Hour)
	h.sweep(t, 2) // the last refresh token, and the session
	_, err = h.refresh(t, second.RefreshToken)
	mustFail(t, "swept", err, api.CodeUnauthenticated)
	h.sweep(t, 0)
	if n := count(t, h.raw, "SELECT COUNT(*) FROM credentials WHERE id = $1", key.ID); n != 1 {
		t.Error("a key was swept")
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action = 'session.login'"); n != 1 {
		t.Error("the log was swept")
	}
}

func testSweepGroups(t *testing.T, h *house) {
	const many = 1203
	exec(t, h.raw, `INSERT INTO sessions (id, user_id, organization_id, created_at) SELECT $1, $2, $3, 1`,
		h.setup.Project.ID, h.setup.UserID, h.setup.OrganizationID)
	tx, err := h.raw.BeginTx(t.Context(), nil)
	must(t, err)
	for i := range many {
		hash := credential.HashSecret(string(rune('a'+i%26)) + time.Duration(i).String())
		_, err := tx.ExecContext(t.Context(),
			`INSERT INTO refresh_tokens (secret_hash, session_id, created_at, expires_at, spent_at) VALUES ($1, $2, 1, 2, 2)`,
			hash[:], h.setup.Project.ID)
		must(t, err)
	}
	must(t, tx.Commit())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := h.services.Sweeper.Sweep(ctx); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: swept %d, %v", n, err)
	}
	h.sweep(t, many+1)
}
