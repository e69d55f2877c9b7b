package account

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// Member is a user in an organization.
type Member struct {
	UserID string
	Email  string
	Role   string
	// Since is when they joined.
	Since time.Time
}

// MemberStore keeps who belongs to an organization.
type MemberStore interface {
	// ListMembers returns at most limit members of an organization, those
	// with user ids above after, in order of user id.
	ListMembers(ctx context.Context, organizationID, after string, limit int) ([]Member, error)
	// ChangeMember has decide look at a member while nobody else changes who
	// belongs to the organization, and does in the same transaction what it
	// says. decide may run several times. It reports whether there is such an
	// organization.
	ChangeMember(ctx context.Context, q MemberQuery, decide func(MemberState) (MemberChange, error)) (bool, error)
}

// MemberQuery names a member and who wants to change them.
type MemberQuery struct {
	OrganizationID string
	UserID         string
	ActorID        string // empty: the operator
}

// MemberState is what a change of a member is decided by.
type MemberState struct {
	// Member has no role if there is none.
	Member Member
	// ActorRole is empty if the actor does not belong to the organization.
	ActorRole string
	// Owners is how many the organization has.
	Owners int
}

// MemberChange is what becomes of a member. The zero MemberChange is nothing.
type MemberChange struct {
	// Role, if set, is the new one.
	Role string
	// RemovedAt, if set, is when they go: their sessions and access tokens in
	// the organization end.
	RemovedAt time.Time
	// DisownedAt, if set, ends the open invitations that they have made.
	DisownedAt time.Time
	Entries    []auditlog.Entry
}

// Members are the users of organizations.
type Members struct {
	env

	store MemberStore
}

// List returns at most limit members of an organization with user ids above
// after, in order of user id.
func (s *Members) List(ctx context.Context, organizationID, after string, limit int) ([]Member, error) {
	all, err := s.store.ListMembers(ctx, organizationID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	return all, nil
}

// MemberParams names a member and who acts.
type MemberParams struct {
	Actor          auditlog.Actor
	OrganizationID string
	UserID         string
}

// SetRole gives a member another role. A lower one ends the invitations that
// they have made. Faults: validation_failed; not_found, also when the actor
// does not belong to the organization; forbidden when they may not manage it,
// or when an admin would touch an owner or make one; conflict when it would
// leave no owner; unavailable, with applied true when it is done and only the
// announcement failed.
func (s *Members) SetRole(ctx context.Context, p MemberParams, role string) (Member, error) {
	if err := validateRole(role); err != nil {
		return Member{}, err
	}
	var after Member
	err := s.change(ctx, p, func(state MemberState) (MemberChange, error) {
		after = state.Member
		after.Role = role
		if err := judgeRole(state, role, p.Actor); err != nil || role == state.Member.Role {
			return MemberChange{}, err
		}
		e, err := s.memberEntry(p, auditlog.MemberRoleChanged, map[string]string{"from": state.Member.Role, "to": role})
		c := MemberChange{Role: role, Entries: []auditlog.Entry{e}}
		if ranks[role] < ranks[state.Member.Role] {
			c.DisownedAt = e.At
		}
		return c, err
	})
	if err != nil {
		return Member{}, fmt.Errorf("change a member's role: %w", err)
	}
	return after, nil
}

// Remove takes a user out of an organization; everybody may remove
// themselves. Their sessions and access tokens there and the invitations that
// they have made end. Faults: as of SetRole.
func (s *Members) Remove(ctx context.Context, p MemberParams) error {
	err := s.change(ctx, p, func(state MemberState) (MemberChange, error) {
		if err := judgeRemoval(state, p); err != nil {
			return MemberChange{}, err
		}
		e, err := s.memberEntry(p, auditlog.MemberRemoved, map[string]string{"role": state.Member.Role})
		return MemberChange{RemovedAt: e.At, DisownedAt: e.At, Entries: []auditlog.Entry{e}}, err
	})
	if err != nil {
		return fmt.Errorf("remove a member: %w", err)
	}
	return nil
}

func (s *Members) change(ctx context.Context, p MemberParams, decide func(MemberState) (MemberChange, error)) error {
	if !id.Valid(p.OrganizationID) {
		return noOrganization()
	}
	if !id.Valid(p.UserID) {
		return noMember()
	}
	found, err := s.store.ChangeMember(ctx, MemberQuery{
		OrganizationID: p.OrganizationID, UserID: p.UserID, ActorID: p.Actor.UserID,
	}, decide)
	if err == nil && !found {
		err = noOrganization()
	}
	return s.afterChange(ctx, err)
}

func (s *Members) memberEntry(p MemberParams, action auditlog.Action, details map[string]string) (auditlog.Entry, error) {
	return s.entry(auditlog.Entry{
		OrganizationID: p.OrganizationID, Actor: p.Actor, Action: action,
		Object: auditlog.Object{Kind: auditlog.ObjectMember, ID: p.UserID}, Details: details,
	})
}

// judgeRole says whether the actor may give the member a role.
func judgeRole(state MemberState, role string, by auditlog.Actor) error {
	own := roleOf(by, state.ActorRole)
	if err := requireManager(own); err != nil {
		return err
	}
	if state.Member.Role == "" {
		return noMember()
	}
	if err := requirePower(own, state.Member.Role); err != nil {
		return err
	}
	if err := requirePower(own, role); err != nil {
		return err
	}
	if role != RoleOwner {
		return requireOtherOwner(state)
	}
	return nil
}

// judgeRemoval says whether the actor may remove the member.
func judgeRemoval(state MemberState, p MemberParams) error {
	own := roleOf(p.Actor, state.ActorRole)
	switch {
	case ranks[own] == 0:
		return noOrganization()
	case state.Member.Role == "" && ranks[own] >= ranks[RoleAdmin]:
		return noMember()
	}
	if p.UserID != p.Actor.UserID {
		if err := requirePower(own, state.Member.Role); err != nil {
			return err
		}
	}
	return requireOtherOwner(state)
}

// roleOf is what the actor counts as: the operator as an owner.
func roleOf(by auditlog.Actor, role string) string {
	if by.UserID == "" {
		return RoleOwner
	}
	return role
}

func requireOtherOwner(state MemberState) error {
	if state.Member.Role == RoleOwner && state.Owners < 2 {
		return fault.New(api.CodeConflict, "an organization needs an owner, and this is the last one")
	}
	return nil
}

func noMember() error {
	return fault.New(api.CodeNotFound, "there is no such member")
}
