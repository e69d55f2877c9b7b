package actionpulse

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/actionpulse/actionpulse/api"
)

// Organizations are those that the caller belongs to.
type Organizations struct{ link *link }

const organizationPath = "/api/v1/organizations/{id}"

// List returns a page of organizations.
func (o *Organizations) List(ctx context.Context, p Page) (*api.List[api.Organization], error) {
	return list[api.Organization](ctx, o.link, reads("listOrganizations", "/api/v1/organizations").ask(p.query()))
}

// All yields every organization from p on.
func (o *Organizations) All(ctx context.Context, p Page) iter.Seq2[api.Organization, error] {
	return all(p, func(p Page) (*api.List[api.Organization], error) { return o.List(ctx, p) })
}

// Create makes an organization, which the caller owns.
func (o *Organizations) Create(ctx context.Context, n api.NewOrganization) (*api.Organization, error) {
	return fetch[api.Organization](ctx, o.link, changes("createOrganization", http.MethodPost, "/api/v1/organizations").with(n))
}

// Get returns an organization; not_found if the caller does not belong to it.
func (o *Organizations) Get(ctx context.Context, id string) (*api.Organization, error) {
	return fetch[api.Organization](ctx, o.link, reads("getOrganization", organizationPath, id))
}

// Rename gives an organization another name.
func (o *Organizations) Rename(ctx context.Context, id string, n api.NewOrganization) (*api.Organization, error) {
	return fetch[api.Organization](ctx, o.link, changes("renameOrganization", http.MethodPatch, organizationPath, id).with(n))
}

// Usage returns what an organization has used in a month such as 2026-11, and
// what its plan allows; of the present month if that is empty. It also answers
// while the organization is suspended.
func (o *Organizations) Usage(ctx context.Context, id, month string) (*api.OrganizationUsage, error) {
	ask := url.Values{}
	setText(ask, "month", month)
	return fetch[api.OrganizationUsage](ctx, o.link, reads("getUsage", organizationPath+"/usage", id).ask(ask))
}

// AuditLog returns a page of what was changed, latest first.
func (o *Organizations) AuditLog(ctx context.Context, id string, p Page) (*api.List[api.AuditEntry], error) {
	return list[api.AuditEntry](ctx, o.link, reads("listAuditLog", organizationPath+"/audit-log", id).ask(p.query()))
}

// AllAuditLog yields every entry of the audit log from p on.
func (o *Organizations) AllAuditLog(ctx context.Context, id string, p Page) iter.Seq2[api.AuditEntry, error] {
	return all(p, func(p Page) (*api.List[api.AuditEntry], error) { return o.AuditLog(ctx, id, p) })
}
