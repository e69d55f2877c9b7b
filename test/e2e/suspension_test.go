package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
)

// operate runs a command of the operator.
func operate(t *testing.T, r *apptest.Running, command func(app.OrganizationParams) error) {
	t.Helper()
	if err := command(app.OrganizationParams{Config: r.Config().Folder, Log: apptest.Discard}); err != nil {
		t.Fatal(err)
	}
}

// TestSuspension: from the next request on nothing works but logging in, until
// it is resumed. Nothing is lost, and others notice nothing.
func TestSuspension(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		_, theirs := elsewhere(t, r)
		_, refresh := login(t, r, r.Setup.Email, r.Setup.Password)
		suspend := func(p app.OrganizationParams) error {
			return app.SuspendOrganization(t.Context(), p, r.Setup.OrganizationID)
		}
		resume := func(p app.OrganizationParams) error {
			return app.ResumeOrganization(t.Context(), p, r.Setup.OrganizationID)
		}
		everybody := []caller{owner(r), {r, r.Setup.BrowserToken}, {r, r.Setup.ServerKey}, {r, r.Setup.LegacyKey}, {r, r.Setup.ProjectKey}, {r, r.Setup.CIToken}}
		paths := []string{"GET " + project(r), "POST /v1/track", "POST /v1/track", "POST /v1/alias", "GET /v1/idempotency-keys?key=a", "POST " + markers(r) + "/deploy"}
		invitation := owner(r).must(t, 201, "POST", own(r)+"/invitations", `{"email":"late@localhost","role":"admin"}`).text(t, "token")
		accept := fmt.Sprintf(`{"token":%q,"password":%q}`, invitation, newPassword)
		for range 2 {
			caller{r, r.Setup.ServerKey}.must(t, 202, "POST", "/v1/track", goodBatch)
			operate(t, r, suspend)
			operate(t, r, suspend)
			for i, c := range everybody {
				method, path, _ := strings.Cut(paths[i], " ")
				if s := c.refused(t, "payment_required", method, path, goodBatch); s.status != 402 {
					t.Errorf("%d", s.status)
				}
			}
			access, _ := login(t, r, r.Setup.Email, r.Setup.Password)
			access.refused(t, "payment_required", "GET", project(r), "")
			access.refused(t, "payment_required", "POST", "/api/v1/auth/logout", "")
			next := nobody(r).must(t, 200, "POST", "/api/v1/auth/refresh", refreshBody(refresh))
			refresh = next.text(t, "refresh_token")
			caller{r, next.text(t, "access_token")}.refused(t, "payment_required", "GET", project(r), "")
			nobody(r).refused(t, "payment_required", "POST", "/api/v1/invitations/accept", accept)
			theirs.must(t, 200, "GET", "/api/v1/projects", "")
			operate(t, r, resume)
			owner(r).must(t, 200, "GET", project(r), "")
		}
		nobody(r).must(t, 201, "POST", "/api/v1/invitations/accept", accept)
		if err := app.SuspendOrganization(t.Context(), app.OrganizationParams{Config: r.Config().Folder, Log: apptest.Discard}, nowhere); err == nil {
			t.Error("what does not exist was suspended")
		}
		operate(t, r, suspend)
		listed := func() (suspended, active int) {
			operate(t, r, func(p app.OrganizationParams) error {
				all, err := app.ListOrganizations(t.Context(), p)
				for _, o := range all {
					if o.SuspendedAt != nil {
						suspended++
					} else {
						active++
					}
				}
				return err
			})
			return suspended, active
		}
		if suspended, active := listed(); suspended != 1 || active != 1 {
			t.Errorf("%d suspended, %d active", suspended, active)
		}
		r.MustStop()
		if suspended, active := listed(); suspended != 1 || active != 1 { // nobody serves it now
			t.Errorf("%d suspended, %d active", suspended, active)
		}
		operate(t, r, resume)
		again := r.MustServe()
		owner(again).must(t, 200, "GET", project(again), "")
	})
}
