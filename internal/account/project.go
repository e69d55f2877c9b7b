package account

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// ProjectStore keeps projects.
type ProjectStore interface {
	// FindProject returns an organization's project and whether there is one.
	FindProject(ctx context.Context, organizationID, projectID string) (Project, bool, error)
	// ListProjects returns at most limit projects of an organization with
	// numbers above after, in order of number.
	ListProjects(ctx context.Context, organizationID string, after uint32, limit int) ([]Project, error)
	// CreateProject stores a project with the next number, which it returns,
	// and the entry about it.
	CreateProject(ctx context.Context, p Project, e auditlog.Entry) (uint32, error)
	// RenameProject stores a project's name and the entry about it, and
	// reports whether the organization has such a project.
	RenameProject(ctx context.Context, p Project, e auditlog.Entry) (bool, error)
}

// Projects are where events are sent to. Who may do what there is decided by
// whoever asks.
type Projects struct {
	env

	store ProjectStore
}

// List returns at most limit projects of an organization with numbers above
// after, in order of number.
func (s *Projects) List(ctx context.Context, organizationID string, after uint32, limit int) ([]Project, error) {
	all, err := s.store.ListProjects(ctx, organizationID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	return all, nil
}

// Get returns a project of an organization. Fault: not_found, also for one of
// another organization.
func (s *Projects) Get(ctx context.Context, organizationID, projectID string) (Project, error) {
	if id.Valid(projectID) {
		p, found, err := s.store.FindProject(ctx, organizationID, projectID)
		if err != nil {
			return Project{}, fmt.Errorf("find a project: %w", err)
		}
		if found {
			return p, nil
		}
	}
	return Project{}, noProject()
}

// Create makes a project. Faults: validation_failed, unavailable.
func (s *Projects) Create(ctx context.Context, by auditlog.Actor, organizationID, name string) (Project, error) {
	if err := credential.ValidateName("name", name); err != nil {
		return Project{}, err
	}
	now := s.clock()
	ref, err := id.New(now, s.random)
	if err != nil {
		return Project{}, err
	}
	p := Project{ID: ref, Name: name, OrganizationID: organizationID, CreatedAt: now}
	e, err := s.projectEntry(p, by, auditlog.ProjectCreated)
	if err != nil {
		return Project{}, err
	}
	if p.Number, err = s.store.CreateProject(ctx, p, e); err != nil {
		return Project{}, fmt.Errorf("create a project: %w", err)
	}
	return p, nil
}

// Rename gives a project another name. Faults: validation_failed; not_found,
// also for one of another organization; unavailable.
func (s *Projects) Rename(ctx context.Context, by auditlog.Actor, p Project, name string) (Project, error) {
	if err := credential.ValidateName("name", name); err != nil {
		return Project{}, err
	}
	if !id.Valid(p.ID) {
		return Project{}, noProject()
	}
	p.Name = name
	e, err := s.projectEntry(p, by, auditlog.ProjectRenamed)
	if err != nil {
		return Project{}, err
	}
	found, err := s.store.RenameProject(ctx, p, e)
	if err != nil {
		return Project{}, fmt.Errorf("rename a project: %w", err)
	}
	if !found {
		return Project{}, noProject()
	}
	return p, nil
}

func (e env) projectEntry(p Project, by auditlog.Actor, action auditlog.Action) (auditlog.Entry, error) {
	return e.entry(auditlog.Entry{
		OrganizationID: p.OrganizationID, ProjectID: p.ID, Actor: by, Action: action,
		Object:  auditlog.Object{Kind: auditlog.ObjectProject, ID: p.ID},
		Details: map[string]string{"name": p.Name},
	})
}

func noProject() error {
	return fault.New(api.CodeNotFound, "there is no such project")
}
