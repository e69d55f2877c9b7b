package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
)

func testAuditLog(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *house){
		"a list goes on where it stopped":        testAuditPages,
		"an entry is read as it was made":        testAuditEntry,
		"no secret gets into it":                 testAuditSecrets,
		"a change whose entry fails is not made": testAuditAtomic,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLivedIn(t, open))
		})
	}
}

func testAuditPages(t *testing.T, h *house) {
	var want []string
	for i := range 5 {
		h.now = h.now.Add(time.Second)
		r, _ := h.create(t, h.params(credential.Server))
		want = append([]string{r.ID}, want...)
		if i == 2 {
			h.addOrganization(t)
		}
	}
	var got []string
	for before := ""; len(got) < len(want); {
		page, err := h.audit.List(t.Context(), h.setup.OrganizationID, before, 2)
		must(t, err)
		for _, e := range page {
			got, before = append(got, e.Object.ID), e.ID
		}
		h.now = h.now.Add(time.Second)
		h.create(t, h.params(credential.Server)) // what comes in meanwhile is not in the way
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"x", "\x00"} {
		if page, err := h.audit.List(t.Context(), h.setup.OrganizationID, bad, 10); err != nil || len(page) != 0 {
			t.Errorf("before %q: %+v, %v", bad, page, err)
		}
	}
	if page, err := h.audit.List(t.Context(), "0196a1b2-c3d4-7e5f-8a6b-0123456789ab", "", 10); err != nil || len(page) != 0 {
		t.Errorf("another organization sees %+v, %v", page, err)
	}
}

func testAuditEntry(t *testing.T, h *house) {
	h.now = h.now.Add(time.Second)
	p := h.params(credential.Server)
	p.Actor = auditlog.Actor{UserID: h.setup.UserID, RequestID: "r-1", Address: "2001:db8::1"}
	r, _ := h.create(t, p)
	got := h.actions(t, h.setup.OrganizationID, 1)
	want := []auditlog.Entry{{
		ID: got[0].ID, OrganizationID: h.setup.OrganizationID, ProjectID: h.setup.Project.ID, At: h.now, Actor: p.Actor,
		Action: auditlog.KeyCreated, Object: auditlog.Object{Kind: auditlog.ObjectKey, ID: r.ID},
		Details: map[string]string{"kind": "server", "name": p.Name},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// testAuditSecrets makes entries of every kind that has to do with a secret,
// and looks for the secrets in every column.
func testAuditSecrets(t *testing.T, h *house) {
	secrets := []string{h.setup.Password, password, "imported-key", "another password"}
	_, err := h.credentials.ImportLegacy(t.Context(), "imported-key", h.params(credential.Legacy))
	must(t, err)
	r, secret := h.create(t, h.params(credential.Server))
	_, next, err := h.rotate(t, r, 0)
	must(t, err)
	i, token := h.invite(t, h.setup.OrganizationID, "b@shop.example", account.RoleMember)
	_, err = h.accept(t, token)
	must(t, err)
	tokens := h.ownerLogin(t)
	second, err := h.refresh(t, tokens.RefreshToken)
	must(t, err)
	must(t, h.services.Sessions.ChangePassword(t.Context(), account.ChangePasswordParams{
		Caller: h.caller(t, second.AccessToken), Current: h.setup.Password, New: "another password", Client: client,
	}))
	_, err = h.refresh(t, tokens.RefreshToken)
	if err == nil || i.ID == "" {
		t.Error("a spent token was taken")
	}
	secrets = append(secrets, secret, next, token, tokens.AccessToken, tokens.RefreshToken, second.AccessToken, second.RefreshToken)
	all := fmt.Sprintf("%+v", h.actions(t, h.setup.OrganizationID, 1000))
	for _, s := range secrets {
		if strings.Contains(all, s) {
			t.Errorf("the log holds %q", s)
		}
	}
	for _, a := range []auditlog.Action{
		auditlog.OrganizationCreated, auditlog.ProjectCreated, auditlog.KeyImported, auditlog.KeyCreated, auditlog.KeyRotated,
		auditlog.InvitationCreated, auditlog.InvitationAccepted, auditlog.SessionLogin, auditlog.PasswordChanged,
		auditlog.SessionRefreshReused,
	} {
		if !strings.Contains(all, string(a)) {
			t.Errorf("%s is not noted", a)
		}
	}
}

// testAuditAtomic lets the entry fail, because its actor is nobody: the change
// must not be there either.
func testAuditAtomic(t *testing.T, h *house) {
	nobody := auditlog.Actor{UserID: "0196a1b2-c3d4-7e5f-8a6b-0000000000ff"}
	p := h.params(credential.Server)
	p.Actor = nobody
	ref := credential.Ref{OrganizationID: h.setup.OrganizationID}
	all, err := h.credentials.List(t.Context(), ref.OrganizationID, 0, 100)
	must(t, err)
	at := slices.IndexFunc(all, func(r credential.Record) bool { return r.Kind == credential.Server })
	ref.ID = all[at].ID
	_, _, created := h.credentials.Create(t.Context(), p)
	_, _, rotated := h.credentials.Rotate(t.Context(), credential.RotateParams{Actor: nobody, Ref: ref})
	_, project := h.services.Projects.Create(t.Context(), nobody, h.setup.OrganizationID, "p")
	_, organization := h.services.Organizations.Create(t.Context(), nobody, "o")
	for what, err := range map[string]error{
		"create": created, "rotate": rotated, "project": project, "organization": organization,
		"revoke":  h.credentials.Revoke(t.Context(), nobody, ref),
		"suspend": h.services.Organizations.Suspend(t.Context(), nobody, h.setup.OrganizationID),
		"logout":  h.services.Sessions.Logout(t.Context(), nobody, h.caller(t, h.setup.AccessToken)),
	} {
		if err == nil {
			t.Errorf("%s went through without its entry", what)
		}
	}
	for _, secret := range []string{h.setup.ServerKey, h.setup.AccessToken} {
		h.mustAnswer(t, secret, "")
	}
	for query, want := range map[string]int{
		"SELECT COUNT(*) FROM credentials": 6, "SELECT COUNT(*) FROM projects": 1, "SELECT COUNT(*) FROM organizations": 1,
	} {
		if n := count(t, h.raw, query); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
}
