package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

func invite(email, role string) string { return fmt.Sprintf(`{"email":%q,"role":%q}`, email, role) }

func acceptance(token, password string) string {
	return fmt.Sprintf(`{"token":%q,"password":%q}`, token, password)
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		o, path, accept := owner(r), own(r)+"/invitations", "/api/v1/invitations/accept"
		made := o.must(t, 201, "POST", path, invite("Ann@localhost", "member"))
		token := made.text(t, "token")
		if made.body["email"] != "ann@localhost" || made.body["accepted_at"] != nil || !strings.HasPrefix(token, "apn_") {
			t.Errorf("%v", made.body)
		}
		caller{r, token}.refused(t, "unauthenticated", "GET", project(r), "")
		nobody(r).refused(t, "not_found", "POST", accept, acceptance(token+"x", newPassword))
		if s := nobody(r).refused(t, "validation_failed", "POST", accept, acceptance(token, "short")); s.detail("field") != "password" {
			t.Errorf("%v", s.body)
		}

		// Of many who accept at once one does.
		var mu sync.Mutex
		codes := map[any]int{}
		together(4, func(int) {
			s := nobody(r).call(t, "POST", accept, acceptance(token, newPassword))
			mu.Lock()
			defer mu.Unlock()
			codes[s.code()]++
		})
		if codes[nil] != 1 || codes["not_found"]+codes["conflict"] != 3 {
			t.Errorf("accepted: %v", codes)
		}
		login(t, r, "ann@localhost", newPassword)
		nobody(r).refused(t, "not_found", "POST", accept, acceptance(token, newPassword))
		o.refused(t, "conflict", "POST", path, invite("ann@localhost", "viewer"))
		o.refused(t, "conflict", "DELETE", path+"/"+made.text(t, "id"), "")

		// A revoked one.
		revoked := o.must(t, 201, "POST", path, invite("bob@localhost", "admin"))
		o.must(t, 204, "DELETE", path+"/"+revoked.text(t, "id"), "")
		o.must(t, 204, "DELETE", path+"/"+revoked.text(t, "id"), "")
		nobody(r).refused(t, "not_found", "POST", accept, acceptance(revoked.text(t, "token"), newPassword))

		// Somebody who exists shows the password that they have.
		there, theirs := elsewhere(t, r)
		second := theirs.must(t, 201, "POST", "/api/v1/organizations/"+there.organization+"/invitations", invite("ann@localhost", "viewer")).text(t, "token")
		nobody(r).refused(t, "invalid_credentials", "POST", accept, acceptance(second, "another password"))
		nobody(r).must(t, 201, "POST", accept, acceptance(second, newPassword))
		ann, _ := login(t, r, "ann@localhost", newPassword)
		if all := ann.must(t, 200, "GET", "/api/v1/organizations", "").items(t); len(all) != 2 || all[0]["role"] != "member" || all[1]["role"] != "viewer" {
			t.Errorf("ann's organizations: %v", all)
		}

		list := o.must(t, 200, "GET", path, "")
		if items := list.items(t); len(items) != 2 || items[0]["revoked_at"] == nil || items[1]["accepted_at"] == nil || items[0]["token"] != nil {
			t.Errorf("%v", items)
		}
	})
}

func TestMembers(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		o, path := owner(r), own(r)+"/members"
		admin, adminID := join(t, r, "admin@localhost", "admin")
		member, memberID := join(t, r, "member@localhost", "member")
		leaver, leaverID := join(t, r, "leaver@localhost", "viewer")
		role := func(role string) string { return fmt.Sprintf(`{"role":%q}`, role) }

		admin.refused(t, "forbidden", "PATCH", path+"/"+r.Setup.UserID, role("viewer"))
		admin.refused(t, "forbidden", "DELETE", path+"/"+r.Setup.UserID, "")
		admin.refused(t, "forbidden", "PATCH", path+"/"+memberID, role("owner"))
		admin.refused(t, "forbidden", "POST", own(r)+"/invitations", invite("x@localhost", "owner"))
		o.refused(t, "conflict", "PATCH", path+"/"+r.Setup.UserID, role("admin"))
		o.refused(t, "conflict", "DELETE", path+"/"+r.Setup.UserID, "")
		o.refused(t, "validation_failed", "PATCH", path+"/"+memberID, role("emperor"))

		// A role counts from the next request on, both ways.
		member.refused(t, "forbidden", "POST", "/api/v1/projects", `{"name":"x"}`)
		if m := admin.must(t, 200, "PATCH", path+"/"+memberID, role("admin")); m.body["role"] != "admin" || m.body["email"] != "member@localhost" {
			t.Errorf("%v", m.body)
		}
		member.must(t, 201, "POST", "/api/v1/projects", `{"name":"x"}`)
		invited := member.must(t, 201, "POST", own(r)+"/invitations", invite("friend@localhost", "admin")).text(t, "token")
		admin.must(t, 200, "PATCH", path+"/"+memberID, role("viewer"))
		member.refused(t, "forbidden", "POST", "/api/v1/projects", `{"name":"x"}`)
		nobody(r).refused(t, "not_found", "POST", "/api/v1/invitations/accept", acceptance(invited, newPassword))

		// Whoever goes is out at once.
		leaver.refused(t, "forbidden", "DELETE", path+"/"+memberID, "")
		leaver.must(t, 204, "DELETE", path+"/"+leaverID, "")
		leaver.refused(t, "unauthenticated", "GET", project(r), "")
		nobody(r).refused(t, "forbidden", "POST", "/api/v1/auth/login", loginBody("leaver@localhost", newPassword))
		o.must(t, 204, "DELETE", path+"/"+memberID, "")
		member.refused(t, "unauthenticated", "GET", project(r), "")
		o.refused(t, "not_found", "DELETE", path+"/"+memberID, "")

		// The last owner may go when there is another.
		o.must(t, 200, "PATCH", path+"/"+adminID, role("owner"))
		admin.must(t, 200, "PATCH", path+"/"+r.Setup.UserID, role("viewer"))
		o.refused(t, "forbidden", "PATCH", path+"/"+adminID, role("viewer"))
		if all := admin.must(t, 200, "GET", path, "").items(t); len(all) != 2 {
			t.Errorf("%v", all)
		}
	})
}

// TestTwoOwnersLeaveAtOnce: one must stay.
func TestTwoOwnersLeaveAtOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		second, secondID := join(t, r, "second@localhost", "owner")
		owners := []caller{owner(r), second}
		left := make([]said, 2)
		together(2, func(i int) {
			left[i] = owners[i].call(t, "DELETE", own(r)+"/members/"+[]string{r.Setup.UserID, secondID}[i], "")
		})
		if (left[0].status == 204) == (left[1].status == 204) || left[0].code() != "conflict" && left[1].code() != "conflict" {
			t.Errorf("%v and %v", left[0], left[1])
		}
	})
}

func TestProjectsAndNames(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		o := owner(r)
		for i := range 3 {
			o.must(t, 201, "POST", "/api/v1/projects", fmt.Sprintf(`{"name":"Project %d"}`, i))
		}
		var names []string
		for cursor := ""; ; {
			s := o.must(t, 200, "GET", "/api/v1/projects?limit=2"+cursor, "")
			for _, p := range s.items(t) {
				names = append(names, fmt.Sprint(p["name"]))
			}
			if s.body["next_cursor"] == nil {
				break
			}
			cursor = "&cursor=" + s.text(t, "next_cursor")
		}
		if want := []string{r.Setup.Project.Name, "Project 0", "Project 1", "Project 2"}; !slices.Equal(names, want) {
			t.Errorf("%v, want %v", names, want)
		}
		for path, was := range map[string]string{project(r): r.Setup.Project.Name, own(r): "o"} {
			if got := o.must(t, 200, "GET", path, "").body["name"]; got != was {
				t.Errorf("%v", got)
			}
			o.must(t, 200, "PATCH", path, `{"name":"Ренамед 😀"}`)
			if got := o.must(t, 200, "GET", path, "").body["name"]; got != "Ренамед 😀" {
				t.Errorf("%v", got)
			}
			for _, bad := range []string{`{"name":""}`, `{"name":"\u0000"}`, `{"name":"` + strings.Repeat("n", 201) + `"}`, `{"title":"x"}`} {
				o.refused(t, "validation_failed", "PATCH", path, bad)
			}
		}
		for _, list := range []string{"/api/v1/projects", "/api/v1/organizations", own(r) + "/members", own(r) + "/audit-log", own(r) + "/invitations", project(r) + "/ingest-keys"} {
			for _, bad := range []string{"x", "LTE", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5"} {
				if s := o.refused(t, "validation_failed", "GET", list+"?cursor="+bad, ""); s.detail("field") != "cursor" {
					t.Errorf("%s: %v", list, s.body)
				}
			}
		}
	})
}
