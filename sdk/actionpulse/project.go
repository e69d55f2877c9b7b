package actionpulse

import (
	"context"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// Projects are where events are sent to, with their keys and customers.
type Projects struct{ link *link }

const projectPath = "/api/v1/projects/{id}"

// List returns a page of projects.
func (p *Projects) List(ctx context.Context, page Page) (*api.List[api.Project], error) {
	return list[api.Project](ctx, p.link, reads("listProjects", "/api/v1/projects").ask(page.query()))
}

// All yields every project from page on.
func (p *Projects) All(ctx context.Context, page Page) iter.Seq2[api.Project, error] {
	return all(page, func(page Page) (*api.List[api.Project], error) { return p.List(ctx, page) })
}

// Create makes a project.
func (p *Projects) Create(ctx context.Context, n api.NewProject) (*api.Project, error) {
	return fetch[api.Project](ctx, p.link, changes("createProject", http.MethodPost, "/api/v1/projects").with(n))
}

// Get returns a project; not_found if there is none that the caller may see.
func (p *Projects) Get(ctx context.Context, id string) (*api.Project, error) {
	return fetch[api.Project](ctx, p.link, reads("getProject", projectPath, id))
}

// Update changes a project's name or how long its data is kept; what c leaves
// out stays as it is.
func (p *Projects) Update(ctx context.Context, id string, c api.ProjectChange) (*api.Project, error) {
	return fetch[api.Project](ctx, p.link, changes("updateProject", http.MethodPatch, projectPath, id).with(c))
}

// IngestDebug returns what intake has accepted and rejected lately, and why.
func (p *Projects) IngestDebug(ctx context.Context, id string) (*api.IngestDebug, error) {
	return fetch[api.IngestDebug](ctx, p.link, reads("getIngestDebug", projectPath+"/ingest/debug", id))
}
