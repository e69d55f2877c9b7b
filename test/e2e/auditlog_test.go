package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
)

// TestAuditLog: everything that was done is told, by whom, to what, and no
// secret is in it.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		access, refresh := login(t, r, r.Setup.Email, r.Setup.Password)
		nobody(r).refused(t, "invalid_credentials", "POST", "/api/v1/auth/login", loginBody(r.Setup.Email, "a wrong password"))
		nobody(r).refused(t, "invalid_credentials", "POST", "/api/v1/auth/login", loginBody("nobody@localhost", "a wrong password"))
		key := access.must(t, 201, "POST", project(r)+"/ci-tokens", `{"name":"CI"}`)
		next := access.must(t, 201, "POST", project(r)+"/ci-tokens/"+key.text(t, "id")+"/rotate", `{}`)
		access.must(t, 204, "DELETE", project(r)+"/ci-tokens/"+next.text(t, "id"), "")
		access.must(t, 204, "DELETE", project(r)+"/ci-tokens/"+next.text(t, "id"), "") // changes nothing, so it tells nothing
		access.must(t, 201, "POST", project(r)+"/ingest-keys/import", `{"name":"Old","token":"phc_AbCdEf0123456789"}`)
		made := access.must(t, 201, "POST", "/api/v1/projects", `{"name":"Shop"}`)
		access.must(t, 200, "PATCH", "/api/v1/projects/"+made.text(t, "id"), `{"name":"Store"}`)
		access.must(t, 200, "PATCH", "/api/v1/projects/"+made.text(t, "id"), `{"retention":{"events_days":30}}`)
		access.must(t, 200, "PATCH", own(r), `{"name":"Renamed"}`)
		job := startJob(t, r, "export", `"user_id":"nobody"`)
		awaitJob(t, r, job)
		archiveOf(t, r, job)
		_, memberID := join(t, r, "member@localhost", "member")
		access.must(t, 200, "PATCH", own(r)+"/members/"+memberID, `{"role":"admin"}`)
		access.must(t, 204, "DELETE", own(r)+"/members/"+memberID, "")
		revoked := access.must(t, 201, "POST", own(r)+"/invitations", invite("x@localhost", "viewer"))
		access.must(t, 204, "DELETE", own(r)+"/invitations/"+revoked.text(t, "id"), "")
		operate(t, r, func(p app.OrganizationParams) error {
			return app.SuspendOrganization(t.Context(), p, r.Setup.OrganizationID)
		})
		operate(t, r, func(p app.OrganizationParams) error {
			return app.ResumeOrganization(t.Context(), p, r.Setup.OrganizationID)
		})
		access.must(t, 204, "POST", "/api/v1/auth/password", fmt.Sprintf(`{"current_password":%q,"new_password":%q}`, r.Setup.Password, newPassword))
		spent := nobody(r).must(t, 200, "POST", "/api/v1/auth/refresh", refreshBody(refresh)).text(t, "refresh_token")
		nobody(r).refused(t, "unauthenticated", "POST", "/api/v1/auth/refresh", refreshBody(refresh))
		last, lastRefresh := login(t, r, r.Setup.Email, newPassword)
		gone, _ := login(t, r, r.Setup.Email, newPassword)
		gone.must(t, 204, "POST", "/api/v1/auth/logout", "")
		last.refused(t, "forbidden", "POST", "/v1/track", goodBatch) // no change, no entry

		entries := auditLog(t, last, own(r))
		var actions []string
		for i, e := range entries {
			actions = append(actions, fmt.Sprint(e["action"]))
			if i > 0 && fmt.Sprint(e["at"]) > fmt.Sprint(entries[i-1]["at"]) {
				t.Errorf("%v is not in the order of time", e)
			}
		}
		slices.Sort(actions) // what was done within one millisecond is in no order
		want := strings.Fields(`organization.created project.created session.login session.login_failed key.created key.rotated
			key.revoked key.imported project.created project.renamed project.retention_changed organization.renamed
			privacy_job.created privacy_job.finished privacy_job.downloaded invitation.created invitation.accepted
			session.login member.role_changed member.removed invitation.created invitation.revoked organization.suspended
			organization.resumed password.changed session.refresh_reused session.login session.logout session.login`)
		slices.Sort(want)
		if !slices.Equal(actions, want) {
			t.Errorf("told:\n%v\nwant:\n%v", actions, want)
		}
		checkEntries(t, r, entries, key.text(t, "id"), next.text(t, "id"))
		text, err := json.Marshal(entries)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{
			r.Setup.Password, newPassword, "a wrong password", access.secret, refresh, spent, last.secret, lastRefresh, key.text(t, "token"),
			next.text(t, "token"), "phc_AbCdEf0123456789", revoked.text(t, "token"), "argon2",
		} {
			if strings.Contains(string(text), secret) {
				t.Errorf("the log holds %s", secret)
			}
		}
	})
}

// auditLog reads all of it, in small pages.
func auditLog(t *testing.T, c caller, organization string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for cursor := ""; ; {
		s := c.must(t, 200, "GET", organization+"/audit-log?limit=4"+cursor, "")
		all = append(all, s.items(t)...)
		if s.body["next_cursor"] == nil {
			return all
		}
		cursor = "&cursor=" + s.text(t, "next_cursor")
	}
}

// checkEntries looks at who did what to which key.
func checkEntries(t *testing.T, r *apptest.Running, entries []map[string]any, keyID, nextID string) {
	t.Helper()
	for _, e := range entries {
		actor, _ := e["actor"].(map[string]any)
		object, _ := e["object"].(map[string]any)
		details, _ := e["details"].(map[string]any)
		switch e["action"] {
		case "key.rotated":
			if object["id"] != keyID || details["replaced_by"] != nextID || actor["user_id"] != r.Setup.UserID ||
				actor["address"] != "127.0.0.1" || actor["request_id"] == nil || e["project_id"] != r.Setup.Project.ID || e["at"] == nil {
				t.Errorf("%v", e)
			}
		case "organization.suspended", "session.login_failed", "session.refresh_reused":
			if actor["user_id"] != nil {
				t.Errorf("nobody is known to have done it: %v", e)
			}
		case "project.retention_changed":
			if details["events_days"] != "30" || object["kind"] != "project" || actor["user_id"] != r.Setup.UserID {
				t.Errorf("%v", e)
			}
		case "privacy_job.created", "privacy_job.downloaded":
			if details["kind"] != "export" || object["kind"] != "privacy_job" || actor["user_id"] != r.Setup.UserID || e["project_id"] != r.Setup.Project.ID {
				t.Errorf("%v", e)
			}
		case "privacy_job.finished":
			if details["status"] != "succeeded" || actor["user_id"] != nil {
				t.Errorf("nobody has done it: %v", e)
			}
		case "member.role_changed":
			if details["from"] != "member" || details["to"] != "admin" {
				t.Errorf("%v", e)
			}
		}
	}
}
