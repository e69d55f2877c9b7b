package storagetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/retention"
)

func testTenant(t *testing.T, open OpenFunc) {
	for name, test := range map[string]func(*testing.T, *house){
		"organizations are seen by their members": testOrganizations,
		"a name is changed by managers":           testRename,
		"a suspension stops every credential":     testSuspend,
		"a plan comes with every credential":      testPlan,
		"whose projects are":                      testProjectOwners,
		"replays use storage up":                  testReplayQuota,
		"projects get numbers in turn":            testProjects,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLivedIn(t, open))
		})
	}
}

func testOrganizations(t *testing.T, h *house) {
	h.addOrganization(t) // one the user does not belong to
	h.now = h.now.Add(account.AccessLifetime)
	made, err := h.services.Organizations.Create(t.Context(), h.owner(), "Second")
	must(t, err)
	first, err := h.services.Organizations.Get(t.Context(), h.setup.UserID, h.setup.OrganizationID)
	must(t, err)
	if first.Name != "Shop" || first.Role != account.RoleOwner || !first.SuspendedAt.IsZero() {
		t.Errorf("got %+v", first)
	}
	var got []account.OwnOrganization
	for after := ""; ; after = got[len(got)-1].ID {
		page, err := h.services.Organizations.List(t.Context(), h.setup.UserID, after, 1)
		must(t, err)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	if diff := cmp.Diff([]account.OwnOrganization{first, made}, got); diff != "" {
		t.Error(diff)
	}
	stranger := h.join(t, "b@shop.example", account.RoleViewer)
	for _, organizationID := range []string{made.ID, h.setup.Project.ID, "\x00", ""} {
		_, err := h.services.Organizations.Get(t.Context(), stranger, organizationID)
		mustFail(t, organizationID, err, api.CodeNotFound)
	}
	_, err = h.services.Organizations.Create(t.Context(), h.owner(), " ")
	mustFail(t, "no name", err, api.CodeValidationFailed)
	if e := h.actions(t, made.ID, 10); len(e) != 1 || e[0].Action != auditlog.OrganizationCreated || e[0].Actor != h.owner() {
		t.Errorf("the new organization's log is %+v", e)
	}
}

func testRename(t *testing.T, h *house) {
	member := auditlog.Actor{UserID: h.join(t, "b@shop.example", account.RoleMember)}
	rename := func(by auditlog.Actor, organizationID, name string) error {
		_, err := h.services.Organizations.Rename(t.Context(), by, organizationID, name)
		return err
	}
	other, _ := h.addOrganization(t)
	mustFail(t, "a member", rename(member, h.setup.OrganizationID, "Mine"), api.CodeForbidden)
	mustFail(t, "another's", rename(h.owner(), other, "Mine"), api.CodeNotFound)
	mustFail(t, "none", rename(h.owner(), h.setup.Project.ID, "Mine"), api.CodeNotFound)
	mustFail(t, "no name", rename(h.owner(), h.setup.OrganizationID, ""), api.CodeValidationFailed)
	must(t, rename(h.owner(), h.setup.OrganizationID, "Магазин"))
	o, err := h.services.Organizations.Get(t.Context(), h.setup.UserID, h.setup.OrganizationID)
	if err != nil || o.Name != "Магазин" {
		t.Errorf("got %+v, %v", o, err)
	}
	h.mustNote(t, auditlog.OrganizationRenamed, h.setup.UserID, h.setup.OrganizationID)
	if n := count(t, h.raw, "SELECT COUNT(*) FROM organizations WHERE name = 'Mine'"); n != 0 {
		t.Error("a refused name was stored")
	}
}

func testSuspend(t *testing.T, h *house) {
	all := []string{h.setup.AccessToken, h.setup.BrowserToken, h.setup.ServerKey, h.setup.LegacyKey, h.setup.ProjectKey, h.setup.CIToken}
	for _, secret := range all {
		h.mustAnswer(t, secret, "")
	}
	for range 2 { // again changes nothing
		must(t, h.services.Organizations.Suspend(t.Context(), auditlog.Actor{}, h.setup.OrganizationID))
	}
	for _, secret := range all {
		h.mustAnswer(t, secret, api.CodePaymentRequired)
	}
	o, err := h.services.Organizations.Get(t.Context(), h.setup.UserID, h.setup.OrganizationID)
	if err != nil || !o.SuspendedAt.Equal(h.now) {
		t.Errorf("got %+v, %v", o, err)
	}
	for range 2 {
		must(t, h.services.Organizations.Resume(t.Context(), auditlog.Actor{}, h.setup.OrganizationID))
	}
	for _, secret := range all {
		h.mustAnswer(t, secret, "")
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action IN ('organization.suspended', 'organization.resumed')"); n != 2 {
		t.Errorf("%d changes are noted, want 2", n)
	}
	err = h.services.Organizations.Suspend(t.Context(), auditlog.Actor{}, h.setup.Project.ID)
	mustFail(t, "none", err, api.CodeNotFound)
}

// testPlan: the plan comes with every credential, and survives what else is
// changed of the organization.
func testPlan(t *testing.T, h *house) {
	set := func(plan string) error {
		return h.services.Organizations.SetPlan(t.Context(), auditlog.Actor{}, h.setup.OrganizationID, plan)
	}
	check := func(want string) {
		t.Helper()
		for _, secret := range []string{h.setup.AccessToken, h.setup.ServerKey} {
			if c, err := h.credentials.Authenticate(t.Context(), secret); err != nil || c.Plan != want {
				t.Errorf("the plan is %q, %v; want %q", c.Plan, err, want)
			}
		}
		all, err := h.services.Organizations.ListAll(t.Context(), "", 10)
		if err != nil || len(all) != 1 || all[0].Plan != want {
			t.Errorf("listed: %+v, %v", all, err)
		}
	}
	check("")
	for range 2 { // again changes nothing
		must(t, set("Пробный"))
		check("Пробный")
	}
	must(t, h.services.Organizations.Suspend(t.Context(), auditlog.Actor{}, h.setup.OrganizationID))
	must(t, h.services.Organizations.Resume(t.Context(), auditlog.Actor{}, h.setup.OrganizationID))
	_, err := h.services.Organizations.Rename(t.Context(), h.owner(), h.setup.OrganizationID, "Renamed")
	must(t, err)
	check("Пробный")
	must(t, set("paid"))
	must(t, set(""))
	check("")
	const details = `SELECT COUNT(*) FROM audit_entries WHERE action = 'organization.plan_changed' AND details = '{"from":"Пробный","to":"paid"}'`
	if n := count(t, h.raw, details); n != 1 {
		t.Errorf("the second change is noted %d times", n)
	}
	if n := count(t, h.raw, "SELECT COUNT(*) FROM audit_entries WHERE action = 'organization.plan_changed'"); n != 3 {
		t.Errorf("%d changes are noted, want 3", n)
	}
	mustFail(t, "none", h.services.Organizations.SetPlan(t.Context(), auditlog.Actor{}, h.setup.Project.ID, "paid"), api.CodeNotFound)
}

func testProjects(t *testing.T, h *house) {
	other, theirs := h.addOrganization(t)
	want := []account.Project{h.setup.Project}
	want[0].CreatedAt = h.now
	for i, name := range []string{"App", "Site"} {
		p, err := h.services.Projects.Create(t.Context(), h.owner(), h.setup.OrganizationID, name)
		must(t, err)
		if p.Number != uint32(i+2) {
			t.Errorf("%s has number %d", name, p.Number)
		}
		want = append(want, p)
	}
	h.mustNote(t, auditlog.ProjectCreated, h.setup.UserID, want[2].ID)
	renamed, err := h.services.Projects.Update(t.Context(), h.owner(), want[1], account.ProjectChange{Name: new("Mobile")})
	must(t, err)
	want[1] = renamed
	h.mustNote(t, auditlog.ProjectRenamed, h.setup.UserID, want[1].ID)
	renamed = h.changeRetention(t, renamed)
	want[1] = renamed
	var got []account.Project
	for after := uint32(0); ; after = got[len(got)-1].Number {
		page, err := h.services.Projects.List(t.Context(), h.setup.OrganizationID, after, 2)
		must(t, err)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p, err := h.services.Projects.Get(t.Context(), h.setup.OrganizationID, want[1].ID); err != nil || p != renamed {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, projectID := range []string{theirs, h.setup.UserID, "\x00"} {
		p := account.Project{ID: projectID, OrganizationID: h.setup.OrganizationID}
		_, err := h.services.Projects.Get(t.Context(), p.OrganizationID, p.ID)
		mustFail(t, "get", err, api.CodeNotFound)
		for _, c := range []account.ProjectChange{{Name: new("Mine")}, {Retention: retention.Change{Events: new(30)}}} {
			_, err = h.services.Projects.Update(t.Context(), h.owner(), p, c)
			mustFail(t, "change", err, api.CodeNotFound)
		}
		_, _, err = h.credentials.Create(t.Context(), credential.CreateParams{
			Kind: credential.Server, Name: "n", OrganizationID: p.OrganizationID, ProjectID: p.ID,
		})
		if id := p.ID; id != "\x00" { // the caller has looked that up
			mustFail(t, "a key", err, api.CodeNotFound)
		}
	}
	if p, err := h.services.Projects.Get(t.Context(), other, theirs); err != nil || p.Name != "Theirs" {
		t.Errorf("got %+v, %v", p, err)
	}
}

// changeRetention sets how long a project keeps what, and takes a part of it
// back: what a change does not name stays.
func (h *house) changeRetention(t *testing.T, p account.Project) account.Project {
	t.Helper()
	stale := p
	for _, one := range []struct {
		change retention.Change
		want   retention.Days
	}{
		{retention.Change{Events: new(30), Replays: new(7)}, retention.Days{Events: 30, Replays: 7}},
		{retention.Change{Replays: new(36_500)}, retention.Days{Events: 30, Replays: 36_500}},
		{retention.Change{Events: new(0)}, retention.Days{Replays: 36_500}},
		{retention.Change{Events: new(2), Replays: new(0)}, retention.Days{Events: 2}},
		{retention.Change{Replays: new(5)}, retention.Days{Events: 2, Replays: 5}},
	} {
		// The project that the caller has read may be older than the stored one.
		changed, err := h.services.Projects.Update(t.Context(), h.owner(), stale, account.ProjectChange{Retention: one.change})
		must(t, err)
		h.mustNote(t, auditlog.ProjectRetentionChanged, h.setup.UserID, p.ID)
		p.Retention = one.want
		if changed != p {
			t.Errorf("got %+v, want %+v", changed, p)
		}
	}
	all, err := h.store.ListRetention(t.Context(), p.Number-1, 1)
	if err != nil || len(all) != 1 || all[0] != (retention.Project{ID: p.ID, Number: p.Number, Days: p.Retention}) {
		t.Errorf("got %+v, %v", all, err)
	}
	return p
}
