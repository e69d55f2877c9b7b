package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// acceptTries limits how often an acceptance is prepared anew because the
// invited user has been made, or has changed the password, meanwhile.
const acceptTries = 3

// AcceptParams says who accepts an invitation.
type AcceptParams struct {
	Token string
	// Password is that of the user with the invitation's email, or the one
	// they want if there is no such user yet.
	Password string
	Client   Client
}

// AcceptState is what an acceptance is decided by.
type AcceptState struct {
	Invitation Invitation
	// User has no id if there is none with the invitation's email.
	User User
	// Role is what the user is in the organization already; empty: nothing.
	Role string
	// Suspended says that the organization is.
	Suspended bool
}

// Acceptance is what becomes of an accepted invitation.
type Acceptance struct {
	At time.Time
	// UserID is who becomes a member.
	UserID string
	// NewUser, if set, is stored first.
	NewUser *User
	Entry   auditlog.Entry
}

// Accept makes the invited user a member, and the user too if there is none
// with that email. Faults: not_found when the token is unknown or its
// invitation was accepted, revoked or has expired; validation_failed when a
// new user's password has not 10–1024 bytes; invalid_credentials when an
// existing user's password is wrong, which counts like a failed login;
// rate_limited; payment_required while the organization is suspended; conflict
// when they are a member already; unavailable.
func (s *Invitations) Accept(ctx context.Context, p AcceptParams) (Membership, error) {
	for range acceptTries {
		m, err := s.accept(ctx, p)
		if !errors.Is(err, ErrStale) {
			return m, err
		}
	}
	return Membership{}, fault.New(api.CodeUnavailable, "too many changes at the same time").
		With("applied", false).After(time.Second)
}

// accept returns ErrStale when the user has changed meanwhile.
func (s *Invitations) accept(ctx context.Context, p AcceptParams) (Membership, error) {
	hash := credential.HashSecret(p.Token)
	i, user, found, err := s.store.FindInvitation(ctx, hash)
	if err != nil {
		return Membership{}, fmt.Errorf("find an invitation: %w", err)
	}
	if !found || !i.open(s.clock()) {
		return Membership{}, noInvitation()
	}
	proven, err := s.prove(ctx, p, i, user)
	if err != nil {
		return Membership{}, err
	}
	found, err = s.store.AcceptInvitation(ctx, hash, func(state AcceptState) (Acceptance, error) {
		return s.judgeAcceptance(state, proven, p.Client)
	})
	if err != nil {
		return Membership{}, fmt.Errorf("accept an invitation: %w", err)
	}
	if !found {
		return Membership{}, noInvitation()
	}
	return Membership{OrganizationID: i.OrganizationID, UserID: proven.user.ID, Role: i.Role}, nil
}

// proof is the user whose password was shown.
type proof struct {
	user User
	// isNew says that the user is to be made.
	isNew bool
}

// prove verifies the password of the invited user, or makes a user with it.
func (s *Invitations) prove(ctx context.Context, p AcceptParams, i Invitation, user User) (proof, error) {
	if user.ID != "" {
		right, err := s.passwords.check(ctx, attempt{
			email: user.Email, address: p.Client.Address, password: p.Password, hash: user.PasswordHash,
		})
		if err == nil && !right {
			err = invalidCredentials()
		}
		return proof{user: user}, err
	}
	if err := validatePassword("password", p.Password); err != nil {
		return proof{}, err
	}
	now := s.clock()
	ref, err := id.New(now, s.random)
	if err != nil {
		return proof{}, err
	}
	hash, err := s.passwords.hash(ctx, p.Password)
	if err != nil {
		return proof{}, err
	}
	return proof{user: User{ID: ref, Email: i.Email, PasswordHash: hash, CreatedAt: now}, isNew: true}, nil
}

// judgeAcceptance says what becomes of an invitation, with the facts as they
// are while nobody else can accept it.
func (s *Invitations) judgeAcceptance(state AcceptState, p proof, c Client) (Acceptance, error) {
	now := s.clock()
	switch {
	case !state.Invitation.open(now):
		return Acceptance{}, noInvitation()
	case p.isNew != (state.User.ID == ""), !p.isNew && state.User.PasswordHash != p.user.PasswordHash:
		return Acceptance{}, ErrStale
	case state.Suspended:
		return Acceptance{}, fault.New(api.CodePaymentRequired, "the organization is suspended")
	case state.Role != "":
		return Acceptance{}, alreadyMember()
	}
	e, err := s.invitationEntry(state.Invitation, c.actor(p.user.ID), auditlog.InvitationAccepted)
	a := Acceptance{At: now, UserID: p.user.ID, Entry: e}
	if p.isNew {
		a.NewUser = &p.user
	}
	return a, err
}
