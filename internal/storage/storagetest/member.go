package storagetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
)

func testMember(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *house){
		"members are listed with their roles":        testMembers,
		"a role is what it was set to":               testSetRole,
		"an organization keeps an owner":             testLastOwner,
		"two owners who step down at once leave one": testLastOwnerConcurrently,
		"who is removed has nothing left there":      testRemove,
		"who is demoted has no invitations left":     testDisown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLivedIn(t, open))
		})
	}
}

func (h *house) member(by auditlog.Actor, userID string) account.MemberParams {
	return account.MemberParams{Actor: by, OrganizationID: h.setup.OrganizationID, UserID: userID}
}

func testMembers(t *testing.T, h *house) {
	h.now = h.now.Add(time.Second)
	second := h.join(t, "b@shop.example", account.RoleViewer)
	want := []account.Member{
		{UserID: h.setup.UserID, Email: h.setup.Email, Role: account.RoleOwner, Since: h.now.Add(-time.Second)},
		{UserID: second, Email: "b@shop.example", Role: account.RoleViewer, Since: h.now},
	}
	var got []account.Member
	for after := ""; ; after = got[len(got)-1].UserID {
		page, err := h.services.Members.List(t.Context(), h.setup.OrganizationID, after, 1)
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
	if page, err := h.services.Members.List(t.Context(), other, "", 10); err != nil || len(page) != 0 {
		t.Errorf("another organization has %+v, %v", page, err)
	}
}

func testSetRole(t *testing.T, h *house) {
	userID := h.join(t, "b@shop.example", account.RoleMember)
	tokens := h.login(t, "b@shop.example", password)
	h.mustAnswer(t, tokens.AccessToken, "") // it is in the cache
	m, err := h.services.Members.SetRole(t.Context(), h.member(h.owner(), userID), account.RoleAdmin)
	must(t, err)
	if m.Role != account.RoleAdmin || m.Email != "b@shop.example" || h.caller(t, tokens.AccessToken).Role != account.RoleAdmin {
		t.Errorf("got %+v and %+v, want an admin at once", m, h.caller(t, tokens.AccessToken))
	}
	h.mustNote(t, auditlog.MemberRoleChanged, h.setup.UserID, userID)
	admin := auditlog.Actor{UserID: userID}
	_, err = h.services.Members.SetRole(t.Context(), h.member(admin, h.setup.UserID), account.RoleViewer)
	mustFail(t, "an admin demotes the owner", err, api.CodeForbidden)
	_, err = h.services.Members.SetRole(t.Context(), h.member(admin, userID), account.RoleOwner)
	mustFail(t, "an admin makes an owner", err, api.CodeForbidden)
	_, err = h.services.Members.SetRole(t.Context(), h.member(h.owner(), userID), "root")
	mustFail(t, "no role", err, api.CodeValidationFailed)
	for _, nobody := range []string{h.setup.Project.ID, "\x00"} {
		_, err = h.services.Members.SetRole(t.Context(), h.member(h.owner(), nobody), account.RoleViewer)
		mustFail(t, "nobody", err, api.CodeNotFound)
	}
	other, _ := h.addOrganization(t)
	for _, organizationID := range []string{other, h.setup.Project.ID, "\x00"} {
		p := account.MemberParams{Actor: h.owner(), OrganizationID: organizationID, UserID: h.setup.UserID}
		_, err = h.services.Members.SetRole(t.Context(), p, account.RoleOwner)
		mustFail(t, "another organization", err, api.CodeNotFound)
		mustFail(t, "another organization", h.services.Members.Remove(t.Context(), p), api.CodeNotFound)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action LIKE 'member.%'"); n != 1 {
		t.Errorf("%d changes are noted, want the one that was made", n)
	}
}

func testLastOwner(t *testing.T, h *house) {
	_, err := h.services.Members.SetRole(t.Context(), h.member(h.owner(), h.setup.UserID), account.RoleAdmin)
	mustFail(t, "the last owner steps down", err, api.CodeConflict)
	mustFail(t, "the last owner leaves", h.services.Members.Remove(t.Context(), h.member(h.owner(), h.setup.UserID)), api.CodeConflict)
	operator := h.member(auditlog.Actor{}, h.setup.UserID)
	mustFail(t, "the operator removes the last owner", h.services.Members.Remove(t.Context(), operator), api.CodeConflict)
	_, err = h.services.Members.SetRole(t.Context(), h.member(h.owner(), h.setup.UserID), account.RoleOwner)
	must(t, err) // that is no change
	h.mustAnswer(t, h.setup.AccessToken, "")
	h.join(t, "b@shop.example", account.RoleOwner)
	must(t, h.services.Members.Remove(t.Context(), h.member(h.owner(), h.setup.UserID)))
	h.mustAnswer(t, h.setup.AccessToken, api.CodeUnauthenticated)
}

func testLastOwnerConcurrently(t *testing.T, h *house) {
	second := h.join(t, "b@shop.example", account.RoleOwner)
	for range 8 {
		exec(t, h.raw, "UPDATE memberships SET role = 'owner'")
		var wg sync.WaitGroup
		var wins, conflicts atomic.Int64
		for _, userID := range []string{h.setup.UserID, second} {
			wg.Go(func() {
				_, err := h.services.Members.SetRole(t.Context(), h.member(auditlog.Actor{UserID: userID}, userID), account.RoleMember)
				switch {
				case err == nil:
					wins.Add(1)
				case fault.CodeOf(err) == api.CodeConflict:
					conflicts.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		owners := count(t, h.raw, "SELECT COUNT(*) FROM memberships WHERE role = 'owner'")
		if wins.Load() != 1 || conflicts.Load() != 1 || owners != 1 {
			t.Fatalf("%d stepped down, %d were refused, %d owners are left", wins.Load(), conflicts.Load(), owners)
		}
	}
}

func testRemove(t *testing.T, h *house) {
	other, _ := h.addOrganization(t)
	userID := h.join(t, "b@shop.example", account.RoleMember)
	h.now = h.now.Add(time.Second)
	if again := h.joinOther(t, other, "b@shop.example", account.RoleViewer); again != userID {
		t.Fatalf("one email is two users, %s and %s", userID, again)
	}
	here := h.login(t, "b@shop.example", password)
	there, err := h.services.Sessions.Login(t.Context(), account.LoginParams{
		Email: "b@shop.example", Password: password, OrganizationID: other, Client: client,
	})
	must(t, err)
	viewer := auditlog.Actor{UserID: userID}
	mustFail(t, "a member removes another", h.services.Members.Remove(t.Context(), h.member(viewer, h.setup.UserID)), api.CodeForbidden)
	must(t, h.services.Members.Remove(t.Context(), h.member(viewer, userID))) // oneself
	h.mustAnswer(t, here.AccessToken, api.CodeUnauthenticated)
	_, err = h.refresh(t, here.RefreshToken)
	mustFail(t, "the session there", err, api.CodeUnauthenticated)
	h.mustAnswer(t, there.AccessToken, "")
	h.mustNote(t, auditlog.MemberRemoved, userID, userID)
	mustFail(t, "again", h.services.Members.Remove(t.Context(), h.member(h.owner(), userID)), api.CodeNotFound)
	mustFail(t, "by one who left", h.services.Members.Remove(t.Context(), h.member(viewer, h.setup.UserID)), api.CodeNotFound)
	h.join(t, "b@shop.example", account.RoleMember)
	h.mustAnswer(t, here.AccessToken, api.CodeUnauthenticated) // joining again revives nothing
}

func testDisown(t *testing.T, h *house) {
	for _, end := range []string{"demoted", "removed"} {
		userID := h.join(t, end+"@shop.example", account.RoleAdmin)
		p := account.InviteParams{
			Actor: auditlog.Actor{UserID: userID}, OrganizationID: h.setup.OrganizationID,
			Email: "friend-of-" + end + "@shop.example", Role: account.RoleAdmin,
		}
		_, token, err := h.services.Invitations.Create(t.Context(), p)
		must(t, err)
		_, kept := h.invite(t, h.setup.OrganizationID, "kept-"+end+"@shop.example", account.RoleMember)
		if end == "demoted" {
			_, err = h.services.Members.SetRole(t.Context(), h.member(h.owner(), userID), account.RoleMember)
		} else {
			err = h.services.Members.Remove(t.Context(), h.member(h.owner(), userID))
		}
		must(t, err)
		_, err = h.accept(t, token)
		mustFail(t, end, err, api.CodeNotFound)
		_, err = h.accept(t, kept)
		must(t, err)
	}
}
