package account

import (
	"context"
	"net/netip"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
)

const (
	// AccessLifetime is how long an access token works.
	AccessLifetime = time.Hour
	// RefreshLifetime is how long a refresh token can be spent.
	RefreshLifetime = 30 * 24 * time.Hour

	accessTokenName = "Session"
)

// Session is a family of tokens: what one login made and its refreshes.
type Session struct {
	ID     string
	UserID string
	// OrganizationID is what its next access token is for.
	OrganizationID string
	CreatedAt      time.Time
	RevokedAt      time.Time // zero: it goes on
}

// RefreshToken is a refresh token as it is stored.
type RefreshToken struct {
	Hash      credential.Hash
	CreatedAt time.Time
	ExpiresAt time.Time
	SpentAt   time.Time // zero: it was not
}

// Membership is a user's place in an organization.
type Membership struct {
	OrganizationID string
	UserID         string
	Role           string
}

// SessionStore keeps sessions and the users whose they are.
type SessionStore interface {
	// FindUser returns the user with an email and whether there is one.
	FindUser(ctx context.Context, email string) (User, bool, error)
	// FindUserByID returns a user and whether there is one.
	FindUserByID(ctx context.Context, userID string) (User, bool, error)
	// FindMembership returns a user's place in an organization, or the
	// earliest of all that they have if that is empty, and whether there is
	// one.
	FindMembership(ctx context.Context, userID, organizationID string) (Membership, bool, error)
	// CreateSession stores a new session with its tokens and the entry about
	// it. It reports false, and stores nothing, when the user has another
	// password hash than that by now.
	CreateSession(ctx context.Context, s NewSession) (bool, error)
	// CreateEntry stores an entry of the audit log that tells of no change.
	CreateEntry(ctx context.Context, e auditlog.Entry) error
	// ChangeSession has decide look at a refresh token and its session, which
	// nobody else changes meanwhile, and does in the same transaction what it
	// says. decide may run several times. It reports whether there is such a
	// token; decide is not asked if there is none.
	ChangeSession(ctx context.Context, q SessionQuery, decide func(SessionState) (SessionChange, error)) (bool, error)
	// RevokeAccess ends a session, and with it all its tokens; or, when the
	// access token has none, that token. Ended ones stay as they are.
	RevokeAccess(ctx context.Context, r AccessRevocation) error
	// ChangePassword gives a user another password hash, and ends all their
	// sessions and access tokens but one. It reports false, and changes
	// nothing, when the user has another password hash than the old one by
	// now.
	ChangePassword(ctx context.Context, c PasswordChange) (bool, error)
}

// NewSession is what a login stores.
type NewSession struct {
	Session      Session
	PasswordHash string // the one that was verified
	Refresh      RefreshToken
	Access       credential.Draft
	Entry        auditlog.Entry
}

// SessionQuery names a session by one of its refresh tokens.
type SessionQuery struct {
	Hash credential.Hash
	// OrganizationID is the organization whose membership is asked for; empty
	// is the session's.
	OrganizationID string
}

// SessionState is what a refresh is decided by.
type SessionState struct {
	Session Session
	Token   RefreshToken
	// OrganizationID is the one that was asked for.
	OrganizationID string
	// Role is the user's role there, empty if they are no member.
	Role string
}

// SessionChange is what becomes of a session. The zero SessionChange is
// nothing.
type SessionChange struct {
	// RevokedAt, if set, ends it.
	RevokedAt time.Time
	// Next, if set, are its new tokens; the refresh token that was asked about
	// is spent.
	Next    *NextTokens
	Entries []auditlog.Entry
}

// NextTokens are a session's new tokens. The organization of the access token
// becomes the session's.
type NextTokens struct {
	Refresh RefreshToken
	Access  credential.Draft
}

// AccessRevocation names what a logout ends.
type AccessRevocation struct {
	SessionID    string
	CredentialID string // if there is no session
	At           time.Time
	Entry        auditlog.Entry
}

// PasswordChange is what ChangePassword stores.
type PasswordChange struct {
	UserID           string
	OldHash, NewHash string
	At               time.Time
	// KeepSessionID and KeepCredentialID go on.
	KeepSessionID    string
	KeepCredentialID string
	Entry            auditlog.Entry
}

// Client is where a request without a credential comes from.
type Client struct {
	// Address is the client's, as quota.ClientAddress gives it. All invalid
	// ones count as one.
	Address   netip.Addr
	RequestID string
}

// actor is the client as the user they claim to be.
func (c Client) actor(userID string) auditlog.Actor {
	a := auditlog.Actor{UserID: userID, RequestID: c.RequestID}
	if c.Address.IsValid() {
		a.Address = c.Address.String()
	}
	return a
}

// Tokens are what a user goes on with. They are not kept and cannot be had
// again.
type Tokens struct {
	AccessToken  string
	RefreshToken string
	// ExpiresIn is how long the access token works.
	ExpiresIn      time.Duration
	UserID         string
	OrganizationID string
	SessionID      string
}

// Sessions logs users in and out.
type Sessions struct {
	env

	store     SessionStore
	passwords *passwords
}
