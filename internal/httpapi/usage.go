package httpapi

import (
	"context"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/quota"
)

// Usage tells what organizations have used; see quota.Reporter.
type Usage interface {
	Report(ctx context.Context, p quota.ReportParams) (quota.Report, error)
}

// projectPage is how many projects are looked up at once.
const projectPage = 200

var getUsageOperation = operation{
	id: "getUsage", tag: tagOrganizations, summary: "Get what the organization of the access token has used in a month",
	description: "Also for a suspended organization. Months are those of UTC, by the time of receipt.",
	params:      []param{idParam("id", "The organization of the access token."), textParam("month", "Such as 2026-11; the present month if absent.")},
	replies:     replyOK("What was used, and what the plan that is in force now allows.", api.OrganizationUsage{}),
}

// getUsage returns what an organization has used in a month.
func (s *service) getUsage(x *exchange) (answer, error) {
	month, err := s.askedMonth(x)
	if err != nil {
		return answer{}, err
	}
	id, err := ownOrganization(x)
	if err != nil {
		return answer{}, err
	}
	projects, err := s.allProjects(x.r.Context(), id)
	if err != nil {
		return answer{}, err
	}
	numbers := make([]uint32, len(projects))
	for i := range projects {
		numbers[i] = projects[i].Number
	}
	report, err := s.Usage.Report(x.r.Context(), quota.ReportParams{
		Organization: id, Plan: x.caller.Plan, Month: month, Projects: numbers,
	})
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, organizationUsageOf(month, report, projects))
}

// askedMonth returns the month that the query string asks for.
func (s *service) askedMonth(x *exchange) (quota.Month, error) {
	values, given := x.r.URL.Query()["month"]
	if !given {
		return quota.MonthOf(s.Now()), nil
	}
	if month, ok := quota.ParseMonth(values[0]); ok && len(values) == 1 {
		return month, nil
	}
	return 0, fault.Field("month", "month must be one such as 2026-11")
}

func (s *service) allProjects(ctx context.Context, organizationID string) (all []account.Project, err error) {
	for after := uint32(0); ; after = all[len(all)-1].Number {
		page, err := s.Projects.List(ctx, organizationID, after, projectPage)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(page) < projectPage {
			return all, nil
		}
	}
}

// organizationUsageOf is usage as it is sent.
func organizationUsageOf(month quota.Month, r quota.Report, projects []account.Project) api.OrganizationUsage {
	u := api.OrganizationUsage{
		Month: month.String(), ResetsAt: api.TimeText(month.End()),
		Events: usageLimit(r.Events, r.Plan.Events), Storage: usageLimit(r.Storage, r.Plan.Storage),
		Projects: make([]api.ProjectUsage, len(projects)),
	}
	if r.Plan.Name != "" {
		u.Plan = &api.UsagePlan{Name: r.Plan.Name, Trial: r.Plan.Trial}
	}
	for i, p := range projects {
		u.Projects[i] = api.ProjectUsage{ProjectID: p.ID, Name: p.Name, Events: r.Projects[i].Events, Storage: r.Projects[i].Storage}
	}
	return u
}

func usageLimit(used, limit int64) api.UsageLimit {
	if limit == 0 {
		return api.UsageLimit{Used: used}
	}
	return api.UsageLimit{Used: used, Limit: &limit}
}
