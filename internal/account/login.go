package account

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// LoginParams says who wants to log in.
type LoginParams struct {
	Email    string
	Password string
	// OrganizationID is where the user wants to work; empty is the
	// organization they have belonged to longest.
	OrganizationID string
	Client         Client
}

// Login begins a session. It works for suspended organizations, too. Faults:
// invalid_credentials when the email or the password is wrong, which of them
// cannot be told; rate_limited after too many such failures, when the password
// is not even looked at; forbidden when the user is no member of the
// organization, or of any; unavailable.
func (s *Sessions) Login(ctx context.Context, p LoginParams) (Tokens, error) {
	email := strings.ToLower(p.Email)
	user, err := s.findUser(ctx, email)
	if err != nil {
		return Tokens{}, err
	}
	right, err := s.passwords.check(ctx, attempt{email: email, address: p.Client.Address, password: p.Password, hash: user.PasswordHash})
	if err != nil {
		return Tokens{}, err
	}
	if !right {
		return Tokens{}, s.refuseLogin(ctx, p, user)
	}
	place, found, err := s.membership(ctx, user.ID, p.OrganizationID)
	if err != nil {
		return Tokens{}, err
	}
	if !found {
		return Tokens{}, fault.New(api.CodeForbidden, "the user is no member of such an organization")
	}
	return s.begin(ctx, user, place, p.Client)
}

// findUser returns the user with an email, who has no id and no hash if there
// is none. An email that cannot be one is nobody's.
func (s *Sessions) findUser(ctx context.Context, email string) (User, error) {
	if !validEmail(email) {
		return User{}, nil
	}
	user, found, err := s.store.FindUser(ctx, email)
	if err != nil {
		return User{}, fmt.Errorf("find a user: %w", err)
	}
	if !found {
		return User{}, nil
	}
	return user, nil
}

// membership returns the user's place in an organization.
func (s *Sessions) membership(ctx context.Context, userID, organizationID string) (Membership, bool, error) {
	if organizationID != "" && !id.Valid(organizationID) {
		return Membership{}, false, nil
	}
	m, found, err := s.store.FindMembership(ctx, userID, organizationID)
	if err != nil {
		return Membership{}, false, fmt.Errorf("find a membership: %w", err)
	}
	return m, found, nil
}

// refuseLogin notes a failure in the audit log of the organization that the
// user wanted or, if they do not belong to it, of the first one they do.
func (s *Sessions) refuseLogin(ctx context.Context, p LoginParams, user User) error {
	refusal := invalidCredentials()
	if user.ID == "" {
		return refusal
	}
	place, found, err := s.membership(ctx, user.ID, p.OrganizationID)
	if err == nil && !found {
		place, found, err = s.membership(ctx, user.ID, "")
	}
	if err != nil {
		return err
	}
	if !found {
		return refusal
	}
	// Nobody is known to be that user: the actor is only an address.
	e, err := s.entry(auditlog.Entry{
		OrganizationID: place.OrganizationID, Actor: p.Client.actor(""), Action: auditlog.SessionLoginFailed,
		Object: auditlog.Object{Kind: auditlog.ObjectUser, ID: user.ID},
	})
	if err != nil {
		return err
	}
	if err := s.store.CreateEntry(ctx, e); err != nil {
		return fmt.Errorf("note a failed login: %w", err)
	}
	return refusal
}

func invalidCredentials() error {
	return fault.New(api.CodeInvalidCredentials, "the email or the password is wrong")
}

// begin makes a session of a user who has shown the password.
func (s *Sessions) begin(ctx context.Context, user User, place Membership, c Client) (Tokens, error) {
	now := s.clock()
	sessionID, err := id.New(now, s.random)
	if err != nil {
		return Tokens{}, err
	}
	n := NewSession{
		Session:      Session{ID: sessionID, UserID: user.ID, OrganizationID: place.OrganizationID, CreatedAt: now},
		PasswordHash: user.PasswordHash,
	}
	next, tokens, err := s.mint(n.Session, place.OrganizationID, now)
	if err != nil {
		return Tokens{}, err
	}
	n.Refresh, n.Access = next.Refresh, next.Access
	n.Entry, err = s.entry(auditlog.Entry{
		OrganizationID: place.OrganizationID, Actor: c.actor(user.ID), Action: auditlog.SessionLogin,
		Object: auditlog.Object{Kind: auditlog.ObjectSession, ID: sessionID},
	})
	if err != nil {
		return Tokens{}, err
	}
	current, err := s.store.CreateSession(ctx, n)
	if err != nil {
		return Tokens{}, fmt.Errorf("begin a session: %w", err)
	}
	if !current { // the password was changed while it was verified
		return Tokens{}, invalidCredentials()
	}
	return tokens, nil
}

// mint makes a session's next tokens, for an organization.
func (s *Sessions) mint(session Session, organizationID string, now time.Time) (NextTokens, Tokens, error) {
	refresh, err := credential.Mint(credential.RefreshPrefix, s.random)
	if err != nil {
		return NextTokens{}, Tokens{}, err
	}
	draft, access, err := credential.NewDraft(credential.CreateParams{
		Kind: credential.Access, Name: accessTokenName, OrganizationID: organizationID,
		UserID: session.UserID, SessionID: session.ID, Lifetime: AccessLifetime,
	}, now, s.random)
	if err != nil {
		return NextTokens{}, Tokens{}, err
	}
	next := NextTokens{Access: draft, Refresh: RefreshToken{
		Hash: credential.HashSecret(refresh), CreatedAt: now, ExpiresAt: now.Add(RefreshLifetime),
	}}
	return next, Tokens{
		AccessToken: access, RefreshToken: refresh, ExpiresIn: AccessLifetime,
		UserID: session.UserID, OrganizationID: organizationID, SessionID: session.ID,
	}, nil
}
