package storagetest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
)

func testInvitation(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *house){
		"an invitation makes a member, and the user":       testAccept,
		"an invitation that has ended is not found":        testAcceptEnded,
		"a user who exists shows the password":             testAcceptExisting,
		"who may invite, and whom":                         testInvite,
		"invitations are listed newest first":              testListInvitations,
		"accepted fifty times at once it makes one member": testAcceptConcurrently,
		"two invitations of one email make one user":       testAcceptTwoConcurrently,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLivedIn(t, open))
		})
	}
}

func testAccept(t *testing.T, h *house) {
	i, token := h.invite(t, h.setup.OrganizationID, "New@Shop.Example", account.RoleAdmin)
	if i.Email != "new@shop.example" || !i.ExpiresAt.Equal(h.now.Add(account.InvitationLifetime)) {
		t.Errorf("got %+v", i)
	}
	for _, bad := range []string{"short", strings.Repeat("x", 1025)} {
		_, err := h.services.Invitations.Accept(t.Context(), account.AcceptParams{Token: token, Password: bad, Client: client})
		mustFail(t, "a bad password", err, api.CodeValidationFailed)
	}
	m, err := h.accept(t, token)
	must(t, err)
	if m.OrganizationID != h.setup.OrganizationID || m.Role != account.RoleAdmin {
		t.Errorf("got %+v", m)
	}
	c := h.caller(t, h.login(t, "new@shop.example", password).AccessToken)
	if c.UserID != m.UserID || c.Role != account.RoleAdmin || c.OrganizationID != h.setup.OrganizationID {
		t.Errorf("the new user logs in as %+v", c)
	}
	h.mustNote(t, auditlog.InvitationCreated, "", i.ID)
	h.mustNote(t, auditlog.InvitationAccepted, m.UserID, i.ID)
}

func testAcceptEnded(t *testing.T, h *house) {
	_, spent := h.invite(t, h.setup.OrganizationID, "a@shop.example", account.RoleMember)
	_, err := h.accept(t, spent)
	must(t, err)
	i, revoked := h.invite(t, h.setup.OrganizationID, "b@shop.example", account.RoleMember)
	for range 2 { // again changes nothing
		must(t, h.services.Invitations.Revoke(t.Context(), h.owner(), h.setup.OrganizationID, i.ID))
	}
	h.mustNote(t, auditlog.InvitationRevoked, h.setup.UserID, i.ID)
	_, expired := h.invite(t, h.setup.OrganizationID, "c@shop.example", account.RoleMember)
	h.now = h.now.Add(account.InvitationLifetime)
	for what, token := range map[string]string{
		"spent": spent, "revoked": revoked, "expired": expired, "unknown": "apn_unknown", "empty": "", "NUL": "\x00",
	} {
		_, err := h.accept(t, token)
		mustFail(t, what, err, api.CodeNotFound)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM users"); n != 2 {
		t.Errorf("%d users, want the owner and the one who has accepted", n)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action = 'invitation.revoked'"); n != 1 {
		t.Errorf("%d revocations are noted, want 1", n)
	}
}

func testAcceptExisting(t *testing.T, h *house) {
	other, _ := h.addOrganization(t)
	_, token := h.invite(t, other, h.setup.Email, account.RoleOwner)
	_, err := h.accept(t, token)
	mustFail(t, "a wrong password", err, api.CodeInvalidCredentials)
	p := account.AcceptParams{Token: token, Password: h.setup.Password, Client: client}
	m, err := h.services.Invitations.Accept(t.Context(), p)
	must(t, err)
	if m.UserID != h.setup.UserID || m.OrganizationID != other {
		t.Errorf("got %+v", m)
	}
	_, err = h.services.Invitations.Accept(t.Context(), p)
	mustFail(t, "again", err, api.CodeNotFound)
	// Two invitations, made before the first was accepted.
	_, first := h.invite(t, other, "b@shop.example", account.RoleMember)
	_, second := h.invite(t, other, "b@shop.example", account.RoleAdmin)
	_, err = h.accept(t, first)
	must(t, err)
	for range 2 { // a refusal does not spend it
		_, err = h.accept(t, second)
		mustFail(t, "a member already", err, api.CodeConflict)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM memberships WHERE role = 'admin'"); n != 0 {
		t.Error("the second invitation has changed the role")
	}
}

func testInvite(t *testing.T, h *house) {
	admin := auditlog.Actor{UserID: h.join(t, "admin@shop.example", account.RoleAdmin)}
	member := auditlog.Actor{UserID: h.join(t, "member@shop.example", account.RoleMember)}
	other, _ := h.addOrganization(t)
	good := account.InviteParams{
		Actor: h.owner(), OrganizationID: h.setup.OrganizationID, Email: "n@shop.example", Role: account.RoleOwner,
	}
	i, _, err := h.services.Invitations.Create(t.Context(), good)
	must(t, err)
	for what, c := range map[string]struct {
		change func(*account.InviteParams)
		want   api.Code
	}{
		"an admin invites an owner":  {func(p *account.InviteParams) { p.Actor = admin }, api.CodeForbidden},
		"a member invites":           {func(p *account.InviteParams) { p.Actor, p.Role = member, account.RoleViewer }, api.CodeForbidden},
		"into another organization":  {func(p *account.InviteParams) { p.OrganizationID = other }, api.CodeNotFound},
		"into none":                  {func(p *account.InviteParams) { p.OrganizationID = h.setup.Project.ID }, api.CodeNotFound},
		"into what is no id":         {func(p *account.InviteParams) { p.OrganizationID = "\x00" }, api.CodeNotFound},
		"somebody who is there":      {func(p *account.InviteParams) { p.Email = "Member@Shop.Example" }, api.CodeConflict},
		"an email that is none":      {func(p *account.InviteParams) { p.Email = "nobody" }, api.CodeValidationFailed},
		"in a role that there isn't": {func(p *account.InviteParams) { p.Role = "root" }, api.CodeValidationFailed},
	} {
		p := good
		c.change(&p)
		_, _, err := h.services.Invitations.Create(t.Context(), p)
		mustFail(t, what, err, c.want)
	}
	revoke := func(by auditlog.Actor, organizationID, id string) error {
		return h.services.Invitations.Revoke(t.Context(), by, organizationID, id)
	}
	mustFail(t, "an admin revokes an owner's", revoke(admin, h.setup.OrganizationID, i.ID), api.CodeForbidden)
	mustFail(t, "a member revokes", revoke(member, h.setup.OrganizationID, i.ID), api.CodeForbidden)
	mustFail(t, "from another organization", revoke(auditlog.Actor{}, other, i.ID), api.CodeNotFound)
	mustFail(t, "none", revoke(h.owner(), h.setup.OrganizationID, h.setup.Project.ID), api.CodeNotFound)
	if n := count(t, h.raw, "SELECT COUNT(*) FROM invitations WHERE accepted_at IS NULL AND revoked_at IS NULL"); n != 1 {
		t.Errorf("%d open invitations, want 1: a refusal stored or ended one", n)
	}
}

func testListInvitations(t *testing.T, h *house) {
	var want []account.Invitation
	for _, email := range []string{"a@b", "b@b", "c@b"} {
		i, _ := h.invite(t, h.setup.OrganizationID, email, account.RoleMember)
		want = append([]account.Invitation{i}, want...)
		h.now = h.now.Add(account.InvitationLifetime / 10)
	}
	must(t, h.services.Invitations.Revoke(t.Context(), auditlog.Actor{}, h.setup.OrganizationID, want[1].ID))
	want[1].RevokedAt = h.now
	var got []account.Invitation
	for before := ""; ; before = got[len(got)-1].ID {
		page, err := h.services.Invitations.List(t.Context(), h.setup.OrganizationID, before, 2)
		must(t, err)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	other, _ := h.addOrganization(t)
	if page, err := h.services.Invitations.List(t.Context(), other, "", 10); err != nil || len(page) != 0 {
		t.Errorf("another organization has %+v, %v", page, err)
	}
}

func testAcceptConcurrently(t *testing.T, h *house) {
	_, token := h.invite(t, h.setup.OrganizationID, "new@shop.example", account.RoleMember)
	var wg sync.WaitGroup
	var wins atomic.Int64
	for range 50 {
		wg.Go(func() {
			_, err := h.accept(t, token)
			switch {
			case err == nil:
				wins.Add(1)
			case fault.CodeOf(err) != api.CodeNotFound:
				t.Errorf("got %v, want not_found", err)
			}
		})
	}
	wg.Wait()
	members := count(t, h.raw, "SELECT COUNT(*) FROM memberships")
	users := count(t, h.raw, "SELECT COUNT(*) FROM users")
	if wins.Load() != 1 || members != 2 || users != 2 {
		t.Errorf("%d accepted, %d members, %d users, want 1, 2 and 2", wins.Load(), members, users)
	}
	h.login(t, "new@shop.example", password)
}

func testAcceptTwoConcurrently(t *testing.T, h *house) {
	other, _ := h.addOrganization(t)
	for _, email := range []string{"a@shop.example", "b@shop.example", "c@shop.example"} {
		_, first := h.invite(t, h.setup.OrganizationID, email, account.RoleMember)
		_, second := h.invite(t, other, email, account.RoleMember)
		var wg sync.WaitGroup
		for _, token := range []string{first, second} {
			wg.Go(func() {
				if _, err := h.accept(t, token); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM users"); n != 4 {
		t.Errorf("%d users, want 4", n)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM memberships"); n != 7 {
		t.Errorf("%d memberships, want 7", n)
	}
}
