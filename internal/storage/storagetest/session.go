package storagetest

import (
	"strings"
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
	h.joinOwner(t, other)
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
