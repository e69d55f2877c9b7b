package account

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// InvitationLifetime is how long an invitation can be accepted.
const InvitationLifetime = 7 * 24 * time.Hour

// Invitation asks somebody into an organization. Whoever has its token can
// accept it once.
type Invitation struct {
	ID             string
	OrganizationID string
	Email          string // in lower case
	Role           string
	CreatedBy      string // a user; empty: the operator
	CreatedAt      time.Time
	ExpiresAt      time.Time
	AcceptedAt     time.Time // zero: it was not
	RevokedAt      time.Time // zero: it was not
}

// open reports whether an invitation can be accepted.
func (i Invitation) open(now time.Time) bool {
	return i.AcceptedAt.IsZero() && i.RevokedAt.IsZero() && now.Before(i.ExpiresAt)
}

// InvitationStore keeps invitations. Its decide functions may run several
// times.
type InvitationStore interface {
	// CreateInvitation stores an invitation unless decide refuses, which looks
	// at the role of the user who makes it and at that which the invited has
	// already, while nobody else changes who belongs to the organization. It
	// reports whether there is such an organization.
	CreateInvitation(ctx context.Context, i NewInvitation, decide func(creator, invited string) error) (bool, error)
	// ListInvitations returns at most limit invitations of an organization
	// with ids below before, or any if that is empty, the highest id first.
	ListInvitations(ctx context.Context, organizationID, before string, limit int) ([]Invitation, error)
	// RevokeInvitation has decide look at an invitation of an organization and
	// at the role of an actor there, and revokes it at the time of the entry
	// that it returns; or does nothing when that is the zero Entry. It reports
	// whether there is such an invitation.
	RevokeInvitation(ctx context.Context, q InvitationQuery, decide func(i Invitation, actor string) (auditlog.Entry, error)) (bool, error)
	// FindInvitation returns the invitation with a token, the user with its
	// email, who has no id if there is none, and whether there is such an
	// invitation.
	FindInvitation(ctx context.Context, hash credential.Hash) (Invitation, User, bool, error)
	// AcceptInvitation has decide look at an invitation and at the user with
	// its email, while nobody else accepts it, and does in the same
	// transaction what it says. It reports false, and stores nothing, when
	// there is no such invitation, and returns ErrStale when a new user's
	// email has been taken meanwhile.
	AcceptInvitation(ctx context.Context, hash credential.Hash, decide func(AcceptState) (Acceptance, error)) (bool, error)
}

// NewInvitation is what CreateInvitation stores.
type NewInvitation struct {
	Invitation Invitation
	Hash       credential.Hash
	Entry      auditlog.Entry
}

// InvitationQuery names an invitation and who acts.
type InvitationQuery struct {
	OrganizationID string
	ID             string
	ActorID        string // empty: the operator
}

// Invitations ask users into organizations.
type Invitations struct {
	env

	store     InvitationStore
	passwords *passwords
}

// InviteParams says who is invited, as what.
type InviteParams struct {
	Actor          auditlog.Actor
	OrganizationID string
	Email          string
	Role           string
}

// Create makes an invitation and returns it with its token, which cannot be
// had again and is for a link. Faults: validation_failed; not_found, also when
// the actor does not belong to the organization; forbidden when they may not
// manage it, or when an admin would make an owner; conflict when the invited
// is a member already; unavailable.
func (s *Invitations) Create(ctx context.Context, p InviteParams) (Invitation, string, error) {
	n, token, err := s.prepare(p)
	if err != nil {
		return Invitation{}, "", err
	}
	found, err := s.store.CreateInvitation(ctx, n, func(creator, invited string) error {
		if err := requirePower(roleOf(p.Actor, creator), p.Role); err != nil {
			return err
		}
		if invited != "" {
			return alreadyMember()
		}
		return nil
	})
	if err != nil {
		return Invitation{}, "", fmt.Errorf("create an invitation: %w", err)
	}
	if !found {
		return Invitation{}, "", noOrganization()
	}
	return n.Invitation, token, nil
}

func (s *Invitations) prepare(p InviteParams) (NewInvitation, string, error) {
	if err := validateRole(p.Role); err != nil {
		return NewInvitation{}, "", err
	}
	email, err := parseEmail(p.Email)
	if err != nil {
		return NewInvitation{}, "", err
	}
	if !id.Valid(p.OrganizationID) {
		return NewInvitation{}, "", noOrganization()
	}
	now := s.clock()
	ref, err := id.New(now, s.random)
	if err != nil {
		return NewInvitation{}, "", err
	}
	token, err := credential.Mint(credential.InvitationPrefix, s.random)
	if err != nil {
		return NewInvitation{}, "", err
	}
	i := Invitation{
		ID: ref, OrganizationID: p.OrganizationID, Email: email, Role: p.Role, CreatedBy: p.Actor.UserID,
		CreatedAt: now, ExpiresAt: now.Add(InvitationLifetime),
	}
	e, err := s.invitationEntry(i, p.Actor, auditlog.InvitationCreated)
	if err != nil {
		return NewInvitation{}, "", err
	}
	return NewInvitation{Invitation: i, Hash: credential.HashSecret(token), Entry: e}, token, nil
}

// List returns at most limit invitations of an organization, newest first:
// those with ids below before, which is the last id of the page before this
// one, or empty. Those that can no longer be accepted are among them.
func (s *Invitations) List(ctx context.Context, organizationID, before string, limit int) ([]Invitation, error) {
	if before != "" && !id.Valid(before) {
		return nil, nil
	}
	all, err := s.store.ListInvitations(ctx, organizationID, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list invitations: %w", err)
	}
	return all, nil
}

// Revoke ends an invitation. Revoking again changes nothing. Faults:
// not_found, also when the actor does not belong to the organization;
// forbidden when they may not manage it, or when an admin would revoke an
// owner's; conflict when it was accepted; unavailable.
func (s *Invitations) Revoke(ctx context.Context, by auditlog.Actor, organizationID, invitationID string) error {
	found := false
	if id.Valid(invitationID) && id.Valid(organizationID) {
		var err error
		found, err = s.store.RevokeInvitation(ctx, InvitationQuery{
			OrganizationID: organizationID, ID: invitationID, ActorID: by.UserID,
		}, func(i Invitation, actor string) (auditlog.Entry, error) {
			if err := requirePower(roleOf(by, actor), i.Role); err != nil {
				return auditlog.Entry{}, err
			}
			if !i.AcceptedAt.IsZero() {
				return auditlog.Entry{}, fault.New(api.CodeConflict, "the invitation was accepted")
			}
			if !i.RevokedAt.IsZero() {
				return auditlog.Entry{}, nil
			}
			return s.invitationEntry(i, by, auditlog.InvitationRevoked)
		})
		if err != nil {
			return fmt.Errorf("revoke an invitation: %w", err)
		}
	}
	if !found {
		return noInvitation()
	}
	return nil
}

func (s *Invitations) invitationEntry(i Invitation, by auditlog.Actor, action auditlog.Action) (auditlog.Entry, error) {
	return s.entry(auditlog.Entry{
		OrganizationID: i.OrganizationID, Actor: by, Action: action,
		Object:  auditlog.Object{Kind: auditlog.ObjectInvitation, ID: i.ID},
		Details: map[string]string{"email": i.Email, "role": i.Role},
	})
}

func noInvitation() error {
	return fault.New(api.CodeNotFound, "there is no such invitation, or it can no longer be accepted")
}

func alreadyMember() error {
	return fault.New(api.CodeConflict, "the user is a member already")
}
