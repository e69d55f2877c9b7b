package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/quota"
)

// testProjectOwners: whose every project is, of all organizations.
func testProjectOwners(t *testing.T, h *house) {
	other, _ := h.addOrganization(t)
	owners, err := h.store.ProjectOwners(t.Context())
	if err != nil || len(owners) != 2 || owners[h.setup.Project.Number] != h.setup.OrganizationID || owners[77] != other {
		t.Errorf("got %v, %v", owners, err)
	}
}

// testReplayQuota: session replays are refused when they and the events of the
// organization's month have used its storage up, and count for events.
func testReplayQuota(t *testing.T, h *house) {
	other, theirs := h.addOrganization(t)
	received := func(project string, month, bytes int) {
		exec(t, h.raw, fmt.Sprintf("INSERT INTO replay_usage (project_id, month, chunks, bytes) VALUES ('%s', %d, 1, %d)", project, month, bytes))
	}
	at := time.Date(2026, 5, 31, 23, 59, 59, 0, time.UTC)
	plans := quota.NewPlans([]quota.Plan{{Name: "kilo", Storage: 1000}, {Name: "trial", Storage: 1000, Trial: true}, {Name: "events", Events: 1}}, "")
	meter := quota.NewMeter(plans, 202605)
	replays := quota.NewReplays(meter, h.store)
	reserve := func(organization string, at time.Time) (func(bool), error) {
		_, settle, err := replays.ReserveReplay(t.Context(), organization, at, 250)
		return settle, err
	}
	admit := func(organization string) error {
		settle, err := reserve(organization, at)
		if err == nil {
			settle(false)
		}
		return err
	}
	received(h.setup.Project.ID, 202605, 600)
	received(h.setup.Project.ID, 202604, 5000)
	received(theirs, 202605, 2000)
	must(t, admit(h.setup.OrganizationID)) // no plan, no limit
	must(t, h.services.Organizations.SetPlan(t.Context(), auditlog.Actor{}, h.setup.OrganizationID, "kilo"))
	must(t, admit(h.setup.OrganizationID))
	must(t, meter.Admit(quota.Addition{Organization: h.setup.OrganizationID, Plan: "kilo", Project: 1, At: at.UnixMilli(), Events: 1, Bytes: 400}))
	mustFail(t, "replays and events", admit(h.setup.OrganizationID), api.CodeQuotaExceeded)
	_, err := reserve(h.setup.OrganizationID, at.Add(time.Second)) // it is June
	must(t, err)

	event := quota.Addition{Organization: other, Plan: "trial", Project: 77, At: at.UnixMilli(), Events: 1, Bytes: 1}
	must(t, meter.Admit(event)) // nobody has told it of their replays yet
	must(t, replays.Refresh(t.Context(), at))
	mustFail(t, "an event", meter.Admit(event), api.CodeTrialQuotaExceeded)
	must(t, h.services.Organizations.SetPlan(t.Context(), auditlog.Actor{}, other, "events"))
	must(t, admit(other)) // of events alone

	for project, want := range map[uint32]int64{h.setup.Project.Number: 600, 77: 0} {
		got, err := h.store.ProjectReplays(t.Context(), h.setup.OrganizationID, 202605)
		if err != nil || got[project] != want {
			t.Errorf("project %d: %v, %v", project, got, err)
		}
	}
}
