package quota

import (
	"context"
	"fmt"
)

// History knows what was stored in the months before the meter's.
type History interface {
	// StoredUsage returns what was stored of what was received in a month, by
	// project.
	StoredUsage(ctx context.Context, month Month) (map[uint32]Usage, error)
}

// ReportParams say whose usage is asked for.
type ReportParams struct {
	Organization string
	// Plan is the organization's own plan; empty is the default one.
	Plan  string
	Month Month
	// Projects are all of the organization.
	Projects []uint32
}

// Report is what an organization has used in a month.
type Report struct {
	// Plan is the one in force now.
	Plan Plan
	// Events and Storage are those of all projects.
	Events  int64
	Storage int64
	// Projects are in the order in which they were asked for.
	Projects []ProjectReport
}

// ProjectReport is what one project has used.
type ProjectReport struct {
	Events  int64
	Storage int64
}

// Reporter tells what was used.
type Reporter struct {
	meter   *Meter
	history History
	replays ReplayStore
}

// NewReporter returns a Reporter.
func NewReporter(meter *Meter, history History, replays ReplayStore) *Reporter {
	return &Reporter{meter: meter, history: history, replays: replays}
}

// Report returns what was used in a month: to the last request that was taken
// in the meter's months, and what was stored in those before.
func (r *Reporter) Report(ctx context.Context, p ReportParams) (Report, error) {
	events, err := r.events(ctx, p)
	if err != nil {
		return Report{}, err
	}
	replays, err := r.replays.ProjectReplays(ctx, p.Organization, p.Month)
	if err != nil {
		return Report{}, fmt.Errorf("read the usage of session replays: %w", err)
	}
	report := Report{Plan: *r.meter.plans.Of(p.Plan), Projects: make([]ProjectReport, len(p.Projects))}
	for i, number := range p.Projects {
		project := ProjectReport{Events: events[i].Events, Storage: events[i].Bytes + replays[number]}
		report.Projects[i] = project
		report.Events += project.Events
		report.Storage += project.Storage
	}
	return report, nil
}

func (r *Reporter) events(ctx context.Context, p ReportParams) ([]Usage, error) {
	if all, ok := r.meter.Usage(p.Month, p.Projects); ok {
		return all, nil
	}
	stored, err := r.history.StoredUsage(ctx, p.Month)
	if err != nil {
		return nil, fmt.Errorf("read the usage of a month: %w", err)
	}
	all := make([]Usage, len(p.Projects))
	for i, project := range p.Projects {
		all[i] = stored[project]
	}
	return all, nil
}
