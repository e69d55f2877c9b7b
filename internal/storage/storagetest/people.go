package storagetest

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// password is that of the people who join in tests.
const password = "correct horse"

var client = account.Client{Address: netip.MustParseAddr("192.0.2.7"), RequestID: "request-1"}

// owner is the actor that the setup's owner is.
func (h *house) owner() auditlog.Actor { return auditlog.Actor{UserID: h.setup.UserID} }

// invite makes an invitation of the operator's and returns it with its token.
func (h *house) invite(t testing.TB, organizationID, email, role string) (account.Invitation, string) {
	t.Helper()
	i, token, err := h.services.Invitations.Create(t.Context(), account.InviteParams{
		OrganizationID: organizationID, Email: email, Role: role,
	})
	if err != nil {
		t.Fatalf("invite %s: %v", email, err)
	}
	return i, token
}

func (h *house) accept(t testing.TB, token string) (account.Membership, error) {
	t.Helper()
	return h.services.Invitations.Accept(t.Context(), account.AcceptParams{Token: token, Password: password, Client: client})
}

// join has somebody accept an invitation into the setup's organization, and
// returns their id.
func (h *house) join(t testing.TB, email, role string) string {
	t.Helper()
	return h.joinOther(t, h.setup.OrganizationID, email, role)
}

func (h *house) joinOther(t testing.TB, organizationID, email, role string) string {
	t.Helper()
	_, token := h.invite(t, organizationID, email, role)
	m, err := h.accept(t, token)
	if err != nil {
		t.Fatalf("%s accepts: %v", email, err)
	}
	return m.UserID
}

func (h *house) login(t testing.TB, email, password string) account.Tokens {
	t.Helper()
	tokens, err := h.services.Sessions.Login(t.Context(), account.LoginParams{Email: email, Password: password, Client: client})
	if err != nil {
		t.Fatalf("log in as %s: %v", email, err)
	}
	return tokens
}

// ownerLogin logs the setup's owner in.
func (h *house) ownerLogin(t testing.TB) account.Tokens {
	t.Helper()
	return h.login(t, h.setup.Email, h.setup.Password)
}

func (h *house) refresh(t testing.TB, token string) (account.Tokens, error) {
	t.Helper()
	return h.services.Sessions.Refresh(t.Context(), account.RefreshParams{RefreshToken: token, Client: client})
}

// caller is what an access token stands for.
func (h *house) caller(t testing.TB, accessToken string) credential.Credential {
	t.Helper()
	c, err := h.credentials.Authenticate(t.Context(), accessToken)
	if err != nil {
		t.Fatalf("authenticate: %v", err)
	}
	return c
}

// actions are the newest entries of an organization's audit log, newest first.
func (h *house) actions(t testing.TB, organizationID string, n int) []auditlog.Entry {
	t.Helper()
	all, err := h.audit.List(t.Context(), organizationID, "", n)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// mustNote checks that the setup's organization has an entry.
func (h *house) mustNote(t testing.TB, action auditlog.Action, by, object string) {
	t.Helper()
	all := h.actions(t, h.setup.OrganizationID, 1000)
	if !slices.ContainsFunc(all, func(e auditlog.Entry) bool {
		return e.Action == action && e.Actor.UserID == by && e.Object.ID == object
	}) {
		t.Errorf("there is no entry of %s by %q about %q in %+v", action, by, object, all)
	}
}

// mustFail checks the code of an error.
func mustFail(t testing.TB, what string, err error, want api.Code) {
	t.Helper()
	if err == nil || fault.CodeOf(err) != want {
		t.Errorf("%s: got %v, want %s", what, err, want)
	}
}

// must checks that there is no error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
