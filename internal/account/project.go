package account

import (
	"context"
	"fmt"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
	"github.com/actionpulse/actionpulse/internal/retention"
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
	// ChangeProject stores what a change names and the entries about it, and
	// returns the project as it is then, and whether the organization has it.
	ChangeProject(ctx context.Context, organizationID, projectID string, c ProjectChange) (Project, bool, error)
}

// ProjectChange is what becomes of a project; nil leaves a part as it is.
type ProjectChange struct {
	Name      *string
	Retention retention.Change
	// Entries tell of it; Update makes them.
	Entries []auditlog.Entry
}

// Projects are where events are sent to. Who may do what there is decided by
// whoever asks.
type Projects struct {
	env

	store     ProjectStore
	retention retention.Rules
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

// Update changes a project. Faults: validation_failed, also for a retention
// that is shorter than ids of events are remembered; not_found, also for a
// project of another organization; unavailable.
func (s *Projects) Update(ctx context.Context, by auditlog.Actor, p Project, c ProjectChange) (Project, error) {
	if !id.Valid(p.ID) {
		return Project{}, noProject()
	}
	if err := s.prepare(by, p, &c); err != nil {
		return Project{}, err
	}
	if len(c.Entries) == 0 {
		return p, nil
	}
	changed, found, err := s.store.ChangeProject(ctx, p.OrganizationID, p.ID, c)
	if err != nil {
		return Project{}, fmt.Errorf("change a project: %w", err)
	}
	if !found {
		return Project{}, noProject()
	}
	return changed, nil
}

// prepare validates a change and adds the entries about it.
func (s *Projects) prepare(by auditlog.Actor, p Project, c *ProjectChange) error {
	if c.Name != nil {
		if err := credential.ValidateName("name", *c.Name); err != nil {
			return err
		}
		p.Name = *c.Name
		e, err := s.projectEntry(p, by, auditlog.ProjectRenamed)
		if err != nil {
			return err
		}
		c.Entries = append(c.Entries, e)
	}
	if c.Retention == (retention.Change{}) {
		return nil
	}
	if err := s.retention.Validate(c.Retention.Of(retention.Days{})); err != nil {
		return err
	}
	e, err := s.entry(auditlog.Entry{
		OrganizationID: p.OrganizationID, ProjectID: p.ID, Actor: by, Action: auditlog.ProjectRetentionChanged,
		Object:  auditlog.Object{Kind: auditlog.ObjectProject, ID: p.ID},
		Details: daysDetails(c.Retention),
	})
	c.Entries = append(c.Entries, e)
	return err
}

// daysDetails tells what a change names: a number of days, empty for none.
func daysDetails(c retention.Change) map[string]string {
	details := map[string]string{}
	for name, days := range map[string]*int{"events_days": c.Events, "replays_days": c.Replays} {
		switch {
		case days == nil:
		case *days == 0:
			details[name] = ""
		default:
			details[name] = strconv.Itoa(*days)
		}
	}
	return details
}

// InForce returns how long a project keeps what, the server's settings
// included.
func (s *Projects) InForce(p Project) retention.Days { return s.retention.InForce(p.Retention) }

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
