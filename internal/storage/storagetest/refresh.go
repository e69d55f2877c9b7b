package storagetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
)

func testRefresh(t *testing.T, h *house) {
	first, other := h.ownerLogin(t), h.ownerLogin(t)
	h.now = h.now.Add(time.Minute)
	second, err := h.refresh(t, first.RefreshToken)
	must(t, err)
	if second.SessionID != first.SessionID || second.AccessToken == first.AccessToken || second.RefreshToken == first.RefreshToken {
		t.Error("a refresh must make new tokens of the same session")
	}
	third, err := h.refresh(t, second.RefreshToken)
	must(t, err)
	all := []string{first.AccessToken, second.AccessToken, third.AccessToken}
	for _, token := range all {
		h.mustAnswer(t, token, "")
	}
	_, err = h.refresh(t, first.RefreshToken)
	mustFail(t, "a spent token", err, api.CodeUnauthenticated)
	for _, token := range all {
		h.mustAnswer(t, token, api.CodeUnauthenticated)
	}
	_, err = h.refresh(t, third.RefreshToken)
	mustFail(t, "the family's last token", err, api.CodeUnauthenticated)
	h.mustNote(t, auditlog.SessionRefreshReused, "", first.SessionID)
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action = 'session.refresh_reused'"); n != 1 {
		t.Errorf("%d reuses are noted, want 1: an ended session ends once", n)
	}
	for _, token := range []string{"", "apr_unknown", third.AccessToken} {
		_, err := h.refresh(t, token)
		mustFail(t, "unknown", err, api.CodeUnauthenticated)
	}
	h.mustAnswer(t, other.AccessToken, "")
	_, err = h.refresh(t, other.RefreshToken)
	must(t, err)
}

func testRefreshOrganization(t *testing.T, h *house) {
	other, _ := h.addOrganization(t)
	tokens := h.ownerLogin(t)
	p := account.RefreshParams{RefreshToken: tokens.RefreshToken, OrganizationID: other, Client: client}
	for _, organizationID := range []string{other, "0196a1b2-c3d4-7e5f-8a6b-0000000000ff", "\x00"} {
		p.OrganizationID = organizationID
		_, err := h.services.Sessions.Refresh(t.Context(), p)
		mustFail(t, "not a member", err, api.CodeForbidden)
	}
	h.joinOwner(t, other)
	p.OrganizationID = other
	moved, err := h.services.Sessions.Refresh(t.Context(), p) // the refusals have not spent it
	must(t, err)
	if c := h.caller(t, moved.AccessToken); c.OrganizationID != other {
		t.Errorf("got %+v, want it in the other", c)
	}
	next, err := h.refresh(t, moved.RefreshToken)
	must(t, err)
	if next.OrganizationID != other {
		t.Error("a session does not stay where it was moved to")
	}
}

// joinOwner makes the setup's owner a viewer of an organization.
func (h *house) joinOwner(t testing.TB, organizationID string) {
	t.Helper()
	exec(t, h.raw, "INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES ($1, $2, 'viewer', $3)",
		organizationID, h.setup.UserID, h.now.UnixMicro())
}

func testRefreshExpires(t *testing.T, h *house) {
	first, second := h.ownerLogin(t), h.ownerLogin(t)
	h.now = h.now.Add(account.RefreshLifetime - time.Microsecond)
	next, err := h.refresh(t, first.RefreshToken)
	must(t, err)
	h.now = h.now.Add(time.Microsecond)
	_, err = h.refresh(t, second.RefreshToken)
	mustFail(t, "at its end", err, api.CodeUnauthenticated)
	// A spent token that has ended still tells of a theft.
	_, err = h.refresh(t, first.RefreshToken)
	mustFail(t, "spent and ended", err, api.CodeUnauthenticated)
	_, err = h.refresh(t, next.RefreshToken)
	mustFail(t, "after the theft", err, api.CodeUnauthenticated)
}

func testRefreshConcurrently(t *testing.T, h *house) {
	for range 5 {
		tokens := h.ownerLogin(t)
		var wg sync.WaitGroup
		var won atomic.Pointer[account.Tokens]
		var wins, losses atomic.Int64
		for range 2 {
			wg.Go(func() {
				next, err := h.refresh(t, tokens.RefreshToken)
				if err == nil {
					wins.Add(1)
					won.Store(&next)
					return
				}
				losses.Add(1)
				mustFail(t, "the second", err, api.CodeUnauthenticated)
			})
		}
		wg.Wait()
		if wins.Load() != 1 || losses.Load() != 1 {
			t.Fatalf("%d succeeded and %d failed, want one of each", wins.Load(), losses.Load())
		}
		h.mustAnswer(t, won.Load().AccessToken, api.CodeUnauthenticated)
		_, err := h.refresh(t, won.Load().RefreshToken)
		mustFail(t, "the winner's next", err, api.CodeUnauthenticated)
	}
}
