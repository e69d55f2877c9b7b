package account

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/id"
)

// OrganizationStore keeps organizations.
type OrganizationStore interface {
	// ListOrganizations returns at most limit organizations of a user, those
	// with ids above after, in order of id.
	ListOrganizations(ctx context.Context, userID, after string, limit int) ([]OwnOrganization, error)
	// ListAllOrganizations returns at most limit organizations, those with ids
	// above after, in order of id.
	ListAllOrganizations(ctx context.Context, after string, limit int) ([]Organization, error)
	// FindOrganization returns an organization of a user and whether there is
	// such.
	FindOrganization(ctx context.Context, userID, organizationID string) (OwnOrganization, bool, error)
	// CreateOrganization stores a new organization with its owner and the
	// entry about it.
	CreateOrganization(ctx context.Context, o Organization, ownerID string, e auditlog.Entry) error
	// ChangeOrganization has decide look at an organization that nobody else
	// changes meanwhile, and at the role that a user has there, and stores in
	// the same transaction what it returns. decide may run several times. It
	// reports whether there is such an organization.
	ChangeOrganization(ctx context.Context, organizationID, userID string,
		decide func(o Organization, role string) (OrganizationChange, error)) (bool, error)
}

// OwnOrganization is an organization with a user's role in it.
type OwnOrganization struct {
	Organization

	Role string
}

// OrganizationChange is what becomes of an organization: its name, whether it
// is suspended and its plan are stored as they are here.
type OrganizationChange struct {
	Name        string
	SuspendedAt time.Time // zero: it is not
	Plan        string    // empty: the default one
	Entries     []auditlog.Entry
}

// asItIs changes nothing of an organization.
func asItIs(o Organization) OrganizationChange {
	return OrganizationChange{Name: o.Name, SuspendedAt: o.SuspendedAt, Plan: o.Plan}
}

// Organizations are what users belong to.
type Organizations struct {
	env

	store OrganizationStore
}

// List returns at most limit organizations of a user with ids above after, in
// order of id, each with the user's role.
func (s *Organizations) List(ctx context.Context, userID, after string, limit int) ([]OwnOrganization, error) {
	all, err := s.store.ListOrganizations(ctx, userID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list organizations: %w", err)
	}
	return all, nil
}

// ListAll returns at most limit organizations with ids above after, in order of
// id. It is for the operator.
func (s *Organizations) ListAll(ctx context.Context, after string, limit int) ([]Organization, error) {
	all, err := s.store.ListAllOrganizations(ctx, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list all organizations: %w", err)
	}
	return all, nil
}

// Get returns an organization of a user, suspended or not. Fault: not_found,
// also when the user does not belong to it.
func (s *Organizations) Get(ctx context.Context, userID, organizationID string) (OwnOrganization, error) {
	if id.Valid(organizationID) {
		o, found, err := s.store.FindOrganization(ctx, userID, organizationID)
		if err != nil {
			return OwnOrganization{}, fmt.Errorf("find an organization: %w", err)
		}
		if found {
			return o, nil
		}
	}
	return OwnOrganization{}, noOrganization()
}

// Create makes an organization, which the actor becomes the owner of. Faults:
// validation_failed, unavailable.
func (s *Organizations) Create(ctx context.Context, by auditlog.Actor, name string) (OwnOrganization, error) {
	if err := credential.ValidateName("name", name); err != nil {
		return OwnOrganization{}, err
	}
	now := s.clock()
	ref, err := id.New(now, s.random)
	if err != nil {
		return OwnOrganization{}, err
	}
	o := Organization{ID: ref, Name: name, CreatedAt: now}
	e, err := s.organizationEntry(ref, by, auditlog.OrganizationCreated)
	if err != nil {
		return OwnOrganization{}, err
	}
	e.Details = map[string]string{"name": name}
	if err := s.store.CreateOrganization(ctx, o, by.UserID, e); err != nil {
		return OwnOrganization{}, fmt.Errorf("create an organization: %w", err)
	}
	return OwnOrganization{Organization: o, Role: RoleOwner}, nil
}

// Rename gives an organization another name. Faults: validation_failed;
// not_found, also when the actor does not belong to it; forbidden when they
// are neither owner nor admin; unavailable.
func (s *Organizations) Rename(ctx context.Context, by auditlog.Actor, organizationID, name string) (OwnOrganization, error) {
	if err := credential.ValidateName("name", name); err != nil {
		return OwnOrganization{}, err
	}
	var renamed OwnOrganization
	err := s.change(ctx, organizationID, by.UserID, func(o Organization, role string) (OrganizationChange, error) {
		if err := requireManager(role); err != nil {
			return OrganizationChange{}, err
		}
		e, err := s.organizationEntry(o.ID, by, auditlog.OrganizationRenamed)
		e.Details = map[string]string{"from": o.Name, "to": name}
		c := asItIs(o)
		c.Name, c.Entries = name, []auditlog.Entry{e}
		o.Name = name
		renamed = OwnOrganization{Organization: o, Role: role}
		return c, err
	})
	return renamed, err
}

// Suspend has every credential of an organization refused with
// payment_required until it is resumed. Suspending again changes nothing. It
// is for the operator. Faults: not_found; unavailable, with applied true when
// it is done and only the announcement failed.
func (s *Organizations) Suspend(ctx context.Context, by auditlog.Actor, organizationID string) error {
	return s.setSuspended(ctx, by, organizationID, s.clock())
}

// Resume ends a suspension. Faults: as of Suspend.
func (s *Organizations) Resume(ctx context.Context, by auditlog.Actor, organizationID string) error {
	return s.setSuspended(ctx, by, organizationID, time.Time{})
}

// setSuspended suspends an organization as of a time, or resumes it if that is
// zero.
func (s *Organizations) setSuspended(ctx context.Context, by auditlog.Actor, organizationID string, at time.Time) error {
	action := auditlog.OrganizationSuspended
	if at.IsZero() {
		action = auditlog.OrganizationResumed
	}
	err := s.change(ctx, organizationID, by.UserID, func(o Organization, _ string) (OrganizationChange, error) {
		c := asItIs(o)
		if o.SuspendedAt.IsZero() == at.IsZero() {
			return c, nil
		}
		e, err := s.organizationEntry(o.ID, by, action)
		c.SuspendedAt, c.Entries = at, []auditlog.Entry{e}
		return c, err
	})
	return s.afterChange(ctx, err)
}

// SetPlan gives an organization a plan of its own, or the default one if plan
// is empty. The same plan again changes nothing. Whether there is such a plan
// is the caller's to know. It is for the operator. Faults: as of Suspend.
func (s *Organizations) SetPlan(ctx context.Context, by auditlog.Actor, organizationID, plan string) error {
	err := s.change(ctx, organizationID, by.UserID, func(o Organization, _ string) (OrganizationChange, error) {
		c := asItIs(o)
		if o.Plan == plan {
			return c, nil
		}
		e, err := s.organizationEntry(o.ID, by, auditlog.OrganizationPlanChanged)
		e.Details = map[string]string{"from": o.Plan, "to": plan}
		c.Plan, c.Entries = plan, []auditlog.Entry{e}
		return c, err
	})
	return s.afterChange(ctx, err)
}

// change has decide look at an organization and at the role of a user there.
func (s *Organizations) change(ctx context.Context, organizationID, userID string,
	decide func(Organization, string) (OrganizationChange, error),
) error {
	found := false
	if id.Valid(organizationID) {
		var err error
		if found, err = s.store.ChangeOrganization(ctx, organizationID, userID, decide); err != nil {
			return fmt.Errorf("change an organization: %w", err)
		}
	}
	if !found {
		return noOrganization()
	}
	return nil
}

func (e env) organizationEntry(organizationID string, by auditlog.Actor, action auditlog.Action) (auditlog.Entry, error) {
	return e.entry(auditlog.Entry{
		OrganizationID: organizationID, Actor: by, Action: action,
		Object: auditlog.Object{Kind: auditlog.ObjectOrganization, ID: organizationID},
	})
}
