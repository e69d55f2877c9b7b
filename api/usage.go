package api

// Resource is something that a plan limits.
type Resource string

// The resources.
const (
	ResourceEvents  Resource = "events"
	ResourceStorage Resource = "storage"
)

// OrganizationUsage is what an organization has added in a month of UTC, by receipt, and
// what its plan allows. What is deleted later still counts.
type OrganizationUsage struct {
	Month    string         `json:"month"     doc:"Such as 2026-11."`
	Plan     *UsagePlan     `json:"plan,omitempty" doc:"The plan in force now; absent if there is none, and so no limit."`
	Events   UsageLimit     `json:"events"    doc:"Events; an identify is one, an alias none, a duplicate none."`
	Storage  UsageLimit     `json:"storage"   doc:"Bytes, of events as they are encoded and of session replays as they are sent."`
	ResetsAt string         `json:"resets_at" doc:"The end of the month." format:"date-time"`
	Projects []ProjectUsage `json:"projects"  doc:"Every project of the organization."`
}

// UsagePlan is what an organization may add in a month.
type UsagePlan struct {
	Name  string `json:"name"`
	Trial bool   `json:"trial" doc:"Whether a refusal is trial_quota_exceeded."`
}

// UsageLimit is how much of something was used, and how much may be. The last
// request that was taken may have gone past the limit.
type UsageLimit struct {
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit" doc:"What the plan allows now; null is no limit."`
}

// ProjectUsage is what one project has added.
type ProjectUsage struct {
	ProjectID string `json:"project_id" format:"uuid"`
	Name      string `json:"name"`
	Events    int64  `json:"events"`
	Storage   int64  `json:"storage"    doc:"In bytes."`
}
