package actionpulse

import (
	"context"
	"errors"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// App speaks to /api/v1, the application API, with the access token of a user.
// It is safe for use by several goroutines.
//
// An access token that has expired is replaced by spending the refresh token,
// once for all goroutines that wait for it, and the request is made anew; that
// is no attempt. Two programs must not share one refresh token: the second to
// spend it ends the session of both.
//
// None of its changes promises idempotency, so none is repeated by itself: a
// repeat of a create makes a second object. After an [*Error] with
// AppliedUnknown, read the list first.
type App struct {
	Organizations  *Organizations
	Members        *Members
	Invitations    *Invitations
	Projects       *Projects
	IngestKeys     *IngestKeys
	ProjectKeys    *SecretKeys
	CITokens       *SecretKeys
	Markers        *Markers
	Queries        *Queries
	Replays        *Replays
	ModelProviders *ModelProviders
	Webhooks       *Webhooks
	Alerts         *Alerts
	Privacy        *Privacy
	Server         *Server

	link    *link
	session *session
}

// NewApp makes a client of a server's application API. It begins without
// tokens, or with those of [WithTokens]; [App.Login] replaces them.
func NewApp(server string, options ...Option) (*App, error) {
	s := &session{}
	l, err := newLink(linkParams{server: server, options: options, token: s.accessToken, refresh: s.replace})
	if err != nil {
		return nil, err
	}
	s.begin(l)
	return &App{
		Organizations: &Organizations{l}, Members: &Members{l}, Invitations: &Invitations{l}, Projects: &Projects{l},
		IngestKeys:  &IngestKeys{newSecretKeys(l, "/ingest-keys", "IngestKey")},
		ProjectKeys: new(newSecretKeys(l, "/project-keys", "ProjectKey")),
		CITokens:    new(newSecretKeys(l, "/ci-tokens", "CIToken")),
		Markers:     &Markers{l}, Queries: &Queries{l}, Replays: &Replays{l}, ModelProviders: &ModelProviders{l}, Webhooks: &Webhooks{l}, Alerts: &Alerts{l},
		Privacy: &Privacy{l}, Server: &Server{l},
		link: l, session: s,
	}, nil
}

// Login begins a session of a user: the requests that follow carry its access
// token. It is refused with invalid_credentials.
func (a *App) Login(ctx context.Context, login api.Login) (*api.Tokens, error) {
	c := changes("login", http.MethodPost, "/api/v1/auth/login").with(login)
	c.open = true
	tokens, err := fetch[api.Tokens](ctx, a.link, c)
	if err != nil {
		return nil, err
	}
	a.session.take(*tokens)
	return tokens, nil
}

// Refresh spends the refresh token for new tokens before the access token has
// expired, or to work in another organization; empty means the present one. Its
// error wraps [ErrSessionEnded] as that of a request whose token has expired.
func (a *App) Refresh(ctx context.Context, organizationID string) (*api.Tokens, error) {
	tokens, err := a.session.move(ctx, organizationID)
	if _, told := errors.AsType[*Error](err); err == nil || told {
		return tokens, err
	}
	e := changes("refresh", http.MethodPost, "/api/v1/auth/refresh").failure("it was not sent")
	e.Err = err
	return nil, e
}

// Logout ends the session and forgets its tokens, also when the server could
// not be told.
func (a *App) Logout(ctx context.Context) error {
	defer a.session.take(api.Tokens{})
	return perform(ctx, a.link, changes("logout", http.MethodPost, "/api/v1/auth/logout"))
}

// Tokens returns the present tokens, for a program that goes on later; keep
// them as a password is kept.
func (a *App) Tokens() api.Tokens { return a.session.present() }

// ChangePassword gives the caller another password.
func (a *App) ChangePassword(ctx context.Context, change api.PasswordChange) error {
	return perform(ctx, a.link, changes("changePassword", http.MethodPost, "/api/v1/auth/password").with(change))
}

// AcceptInvitation joins an organization by the token of an invitation, which
// can be accepted once. It needs no session and begins none.
func (a *App) AcceptInvitation(ctx context.Context, acceptance api.Acceptance) (*api.Membership, error) {
	c := changes("acceptInvitation", http.MethodPost, "/api/v1/invitations/accept").with(acceptance)
	c.open = true
	return fetch[api.Membership](ctx, a.link, c)
}
