package storagetest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
)

func testSession(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *house){
		"a login makes tokens that work":           testLogin,
		"a wrong login is refused alike":           testLoginFails,
		"a login is for an organization":           testLoginOrganization,
		"a refresh token is spent once":            testRefresh,
		"a refresh can change the organization":    testRefreshOrganization,
		"a refresh token ends":                     testRefreshExpires,
		"of two refreshes at once one succeeds":    testRefreshConcurrently,
		"a logout ends the session and no other":   testLogout,
		"a new password ends all other sessions":   testChangePassword,
		"a login with a password that was, is not": testLoginOvertaken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLivedIn(t, open))
		})
	}
}

func testLogin(t *testing.T, h *house) {
	h.now = h.now.Add(time.Second)
	got := h.login(t, strings.ToUpper(h.setup.Email), h.setup.Password)
	want := account.Tokens{
		AccessToken: got.AccessToken, RefreshToken: got.RefreshToken, ExpiresIn: time.Hour,
		UserID: h.setup.UserID, OrganizationID: h.setup.OrganizationID, SessionID: got.SessionID,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c := h.caller(t, got.AccessToken)
	if c.Kind != credential.Access || c.UserID != h.setup.UserID || c.Role != account.RoleOwner || c.SessionID != got.SessionID {
		t.Errorf("the access token stands for %+v", c)
	}
	h.mustAnswer(t, got.RefreshToken, api.CodeUnauthenticated) // it is no credential
	e := h.actions(t, h.setup.OrganizationID, 1)[0]
	wantEntry := auditlog.Entry{
		ID: e.ID, OrganizationID: h.setup.OrganizationID, At: h.now,
		Actor:  auditlog.Actor{UserID: h.setup.UserID, RequestID: client.RequestID, Address: "192.0.2.7"},
		Action: auditlog.SessionLogin, Object: auditlog.Object{Kind: auditlog.ObjectSession, ID: got.SessionID},
		Details: map[string]string{},
	}
	if diff := cmp.Diff(wantEntry, e); diff != "" {
		t.Error(diff)
	}
	h.now = h.now.Add(time.Hour)
	h.mustAnswer(t, got.AccessToken, api.CodeTokenExpired)
}

func testLoginFails(t *testing.T, h *house) {
	attempt := func(email, password string) string {
		_, err := h.services.Sessions.Login(t.Context(), account.LoginParams{Email: email, Password: password, Client: client})
		mustFail(t, email, err, api.CodeInvalidCredentials)
		return err.Error()
	}
	first := attempt(h.setup.Email, "wrong")
	for _, email := range []string{"nobody@shop.example", "", "no email", "\x00@\xff", strings.Repeat("a", 300) + "@b"} {
		if got := attempt(email, h.setup.Password); got != first {
			t.Errorf("%q: %q can be told from %q", email, got, first)
		}
	}
	h.mustNote(t, auditlog.SessionLoginFailed, "", h.setup.UserID)
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action = 'session.login_failed'"); n != 1 {
		t.Errorf("%d failures are noted, want the one of the user who exists", n)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM sessions"); n != 0 {
		t.Errorf("%d sessions were begun", n)
	}
}

func testLoginOrganization(t *testing.T, h *house) {
	other, _ := h.addOrganization(t)
	p := account.LoginParams{Email: h.setup.Email, Password: h.setup.Password, OrganizationID: other, Client: client}
	for _, organizationID := range []string{other, "0196a1b2-c3d4-7e5f-8a6b-0000000000ff", "\x00"} {
		p.OrganizationID = organizationID
		_, err := h.services.Sessions.Login(t.Context(), p)
		mustFail(t, "not a member", err, api.CodeForbidden)
	}
	h.now = h.now.Add(time.Second)
	exec(t, h.raw, "INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES ($1, $2, 'viewer', $3)",
		other, h.setup.UserID, h.now.UnixMicro())
	if got := h.ownerLogin(t); got.OrganizationID != h.setup.OrganizationID {
		t.Errorf("by default in %s, want the earliest membership %s", got.OrganizationID, h.setup.OrganizationID)
	}
	p.OrganizationID = other
	tokens, err := h.services.Sessions.Login(t.Context(), p)
	must(t, err)
	if c := h.caller(t, tokens.AccessToken); c.OrganizationID != other || c.Role != account.RoleViewer {
		t.Errorf("got %+v, want a viewer in the other", c)
	}
	must(t, h.services.Organizations.Suspend(t.Context(), auditlog.Actor{}, other))
	tokens, err = h.services.Sessions.Login(t.Context(), p)
	must(t, err)
	h.mustAnswer(t, tokens.AccessToken, api.CodePaymentRequired)
	exec(t, h.raw, "DELETE FROM memberships")
	p.OrganizationID = ""
	_, err = h.services.Sessions.Login(t.Context(), p)
	mustFail(t, "without any", err, api.CodeForbidden)
}

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

func testLogout(t *testing.T, h *house) {
	first, second := h.ownerLogin(t), h.ownerLogin(t)
	next, err := h.refresh(t, first.RefreshToken)
	must(t, err)
	caller := h.caller(t, first.AccessToken)
	for range 2 { // again changes nothing
		must(t, h.services.Sessions.Logout(t.Context(), h.owner(), caller))
	}
	for _, token := range []string{first.AccessToken, next.AccessToken} {
		h.mustAnswer(t, token, api.CodeUnauthenticated)
	}
	_, err = h.refresh(t, next.RefreshToken)
	mustFail(t, "after the logout", err, api.CodeUnauthenticated)
	h.mustAnswer(t, second.AccessToken, "")
	h.mustAnswer(t, h.setup.AccessToken, "")
	h.mustNote(t, auditlog.SessionLogout, h.setup.UserID, first.SessionID)
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action = 'session.logout'"); n != 1 {
		t.Errorf("%d logouts are noted, want 1", n)
	}
	must(t, h.services.Sessions.Logout(t.Context(), h.owner(), h.caller(t, h.setup.AccessToken)))
	h.mustAnswer(t, h.setup.AccessToken, api.CodeUnauthenticated)
	h.mustAnswer(t, second.AccessToken, "")
}

func testChangePassword(t *testing.T, h *house) {
	own, other := h.ownerLogin(t), h.ownerLogin(t)
	stranger := h.join(t, "other@shop.example", account.RoleMember)
	strangers := h.login(t, "other@shop.example", password)
	p := account.ChangePasswordParams{
		Caller: h.caller(t, own.AccessToken), Current: h.setup.Password, New: "another password", Client: client,
	}
	for what, change := range map[string]func(*account.ChangePasswordParams){
		"too short": func(p *account.ChangePasswordParams) { p.New = "123456789" },
		"too long":  func(p *account.ChangePasswordParams) { p.New = strings.Repeat("x", 1025) },
	} {
		bad := p
		change(&bad)
		mustFail(t, what, h.services.Sessions.ChangePassword(t.Context(), bad), api.CodeValidationFailed)
	}
	bad := p
	bad.Current = "wrong"
	mustFail(t, "wrong", h.services.Sessions.ChangePassword(t.Context(), bad), api.CodeInvalidCredentials)
	h.mustAnswer(t, other.AccessToken, "")
	must(t, h.services.Sessions.ChangePassword(t.Context(), p))
	for _, token := range []string{other.AccessToken, h.setup.AccessToken} {
		h.mustAnswer(t, token, api.CodeUnauthenticated)
	}
	_, err := h.refresh(t, other.RefreshToken)
	mustFail(t, "another session", err, api.CodeUnauthenticated)
	for _, token := range []string{own.AccessToken, strangers.AccessToken, h.setup.ServerKey} {
		h.mustAnswer(t, token, "")
	}
	_, err = h.refresh(t, own.RefreshToken)
	must(t, err)
	_, err = h.services.Sessions.Login(t.Context(), account.LoginParams{Email: h.setup.Email, Password: h.setup.Password})
	mustFail(t, "the old password", err, api.CodeInvalidCredentials)
	h.login(t, h.setup.Email, p.New)
	h.login(t, "other@shop.example", password)
	h.mustNote(t, auditlog.PasswordChanged, h.setup.UserID, h.setup.UserID)
	if stranger == h.setup.UserID {
		t.Error("two users are one")
	}
}

// testLoginOvertaken: the password was changed after it was verified and
// before the session is stored.
func testLoginOvertaken(t *testing.T, h *house) {
	old, found, err := h.store.FindUser(t.Context(), h.setup.Email)
	if err != nil || !found {
		t.Fatalf("found %t, %v", found, err)
	}
	must(t, h.services.Sessions.ChangePassword(t.Context(), account.ChangePasswordParams{
		Caller: h.caller(t, h.setup.AccessToken), Current: h.setup.Password, New: "another password", Client: client,
	}))
	current, err := h.store.CreateSession(t.Context(), account.NewSession{
		Session:      account.Session{ID: h.setup.Project.ID, UserID: old.ID, OrganizationID: h.setup.OrganizationID, CreatedAt: h.now},
		PasswordHash: old.PasswordHash,
	})
	if err != nil || current {
		t.Errorf("got %t, %v, want no session", current, err)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM sessions"); n != 0 {
		t.Errorf("%d sessions, want none", n)
	}
}
