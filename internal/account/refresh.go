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

// RefreshParams says how a session goes on.
type RefreshParams struct {
	RefreshToken string
	// OrganizationID is where the user wants to work; empty is where the
	// session was.
	OrganizationID string
	Client         Client
}

// Refresh spends a refresh token and makes new tokens of its session. Spending
// one again ends the session with all its tokens: whoever has a copy must not
// go on, and which of two is the copy cannot be told. Faults: unauthenticated
// when the token is unknown, spent or expired or its session has ended;
// forbidden, with the token unspent, when the user is no member of the
// organization; unavailable, with applied true when the session was ended and
// only the announcement failed.
func (s *Sessions) Refresh(ctx context.Context, p RefreshParams) (Tokens, error) {
	if p.OrganizationID != "" && !id.Valid(p.OrganizationID) {
		return Tokens{}, notAMember()
	}
	var tokens Tokens
	reused := false
	found, err := s.store.ChangeSession(ctx, SessionQuery{
		Hash: credential.HashSecret(p.RefreshToken), OrganizationID: p.OrganizationID,
	}, func(state SessionState) (c SessionChange, err error) {
		if reused = !state.Token.SpentAt.IsZero(); reused {
			return s.endReused(state, p.Client)
		}
		c, tokens, err = s.goOn(state)
		return c, err
	})
	if reused {
		err = s.afterChange(ctx, err)
	}
	if err != nil {
		return Tokens{}, fmt.Errorf("refresh a session: %w", err)
	}
	if reused || !found {
		return Tokens{}, unauthenticated()
	}
	return tokens, nil
}

// goOn gives a session new tokens.
func (s *Sessions) goOn(state SessionState) (SessionChange, Tokens, error) {
	now := s.clock()
	if !state.Session.RevokedAt.IsZero() || !now.Before(state.Token.ExpiresAt) {
		return SessionChange{}, Tokens{}, unauthenticated()
	}
	if state.Role == "" {
		return SessionChange{}, Tokens{}, notAMember()
	}
	next, tokens, err := s.mint(state.Session, state.OrganizationID, now)
	if err != nil {
		return SessionChange{}, Tokens{}, err
	}
	return SessionChange{Next: &next}, tokens, nil
}

// endReused ends a session of which a spent token was used again, unless it
// has ended.
func (s *Sessions) endReused(state SessionState, c Client) (SessionChange, error) {
	if !state.Session.RevokedAt.IsZero() {
		return SessionChange{}, nil
	}
	// Whoever has used it is not known to be the user.
	e, err := s.entry(auditlog.Entry{
		OrganizationID: state.Session.OrganizationID, Actor: c.actor(""), Action: auditlog.SessionRefreshReused,
		Object:  auditlog.Object{Kind: auditlog.ObjectSession, ID: state.Session.ID},
		Details: map[string]string{"user_id": state.Session.UserID},
	})
	return SessionChange{RevokedAt: s.clock(), Entries: []auditlog.Entry{e}}, err
}

// Logout ends the session of an access token with all its tokens; a token
// without a session, such as the first one of an installation, ends alone.
// Faults: unavailable, with applied true when it has ended and only the
// announcement failed.
func (s *Sessions) Logout(ctx context.Context, by auditlog.Actor, caller credential.Credential) error {
	object := auditlog.Object{Kind: auditlog.ObjectSession, ID: caller.SessionID}
	if caller.SessionID == "" {
		object = auditlog.Object{Kind: auditlog.ObjectKey, ID: caller.ID}
	}
	e, err := s.entry(auditlog.Entry{
		OrganizationID: caller.OrganizationID, Actor: by, Action: auditlog.SessionLogout, Object: object,
	})
	if err != nil {
		return err
	}
	err = s.afterChange(ctx, s.store.RevokeAccess(ctx, AccessRevocation{
		SessionID: caller.SessionID, CredentialID: caller.ID, At: e.At, Entry: e,
	}))
	if err != nil {
		return fmt.Errorf("log out: %w", err)
	}
	return nil
}

func unauthenticated() error {
	return fault.New(api.CodeUnauthenticated, "the refresh token is unknown, spent or expired")
}

func notAMember() error {
	return fault.New(api.CodeForbidden, "the user is no member of such an organization")
}
