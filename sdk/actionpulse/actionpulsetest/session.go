package actionpulsetest

import (
	"net/http"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// How long tokens work.
const (
	accessLifetime  = time.Hour
	refreshLifetime = 30 * 24 * time.Hour
)

// sessions are those of the one user.
type sessions struct {
	organizationID, userID string
	access, refresh        map[string]*token
}

// token is an access or a refresh token.
type token struct {
	session   *session
	expiresAt time.Time
	spent     bool
}

// session is a family of tokens.
type session struct{ ended bool }

func newSessions() *sessions {
	return &sessions{organizationID: newID(), userID: newID(), access: map[string]*token{}, refresh: map[string]*token{}}
}

// begin makes a session.
func (s *sessions) begin(now time.Time) api.Tokens { return s.mint(&session{}, now) }

// mint makes a session's next tokens.
func (s *sessions) mint(of *session, now time.Time) api.Tokens {
	t := api.Tokens{
		AccessToken: secret("apt_"), RefreshToken: secret("apr_"), ExpiresIn: int64(accessLifetime / time.Second),
		OrganizationID: s.organizationID, UserID: s.userID,
	}
	s.access[t.AccessToken] = &token{session: of, expiresAt: now.Add(accessLifetime)}
	s.refresh[t.RefreshToken] = &token{session: of, expiresAt: now.Add(refreshLifetime)}
	return t
}

var errUnauthenticated = refuse(api.CodeUnauthenticated, "the credential is unknown, or has ended")

// check refuses an access token with unauthenticated or token_expired.
func (s *sessions) check(given string, now time.Time) error {
	t := s.access[given]
	switch {
	case t == nil || t.session.ended:
		return errUnauthenticated
	case past(t.expiresAt, now):
		return refuse(api.CodeTokenExpired, "the access token has expired")
	default:
		return nil
	}
}

// login begins a session.
func (s *Server) login(x *exchange) (reply, error) {
	in, err := decode[api.Login](x)
	if err != nil {
		return reply{}, err
	}
	if strings.ToLower(in.Email) != s.Email || in.Password != s.Password {
		return reply{}, refuse(api.CodeInvalidCredentials, "the email or the password is wrong")
	}
	if err := s.member(in.OrganizationID); err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, s.sessions.begin(s.time()))
}

// member refuses with forbidden for an organization that is not the user's.
func (s *Server) member(organizationID *string) error {
	if organizationID != nil && *organizationID != "" && *organizationID != s.sessions.organizationID {
		return refuse(api.CodeForbidden, "the user is no member of such an organization")
	}
	return nil
}

// refresh spends a refresh token for new tokens. One that is used again ends the
// session.
func (s *Server) refresh(x *exchange) (reply, error) {
	in, err := decode[api.Refresh](x)
	if err != nil {
		return reply{}, err
	}
	if organizationID := in.OrganizationID; organizationID != nil && *organizationID != "" && !isID(*organizationID) {
		return reply{}, s.member(organizationID)
	}
	t := s.sessions.refresh[in.RefreshToken]
	switch {
	case t == nil || t.session.ended || !t.spent && past(t.expiresAt, s.time()):
		return reply{}, errUnauthenticated
	case t.spent:
		t.session.ended = true
		return reply{}, errUnauthenticated
	}
	if err := s.member(in.OrganizationID); err != nil {
		return reply{}, err
	}
	t.spent = true
	return jsonReply(http.StatusOK, s.sessions.mint(t.session, s.time()))
}

// logout ends the session of the access token.
func (s *Server) logout(x *exchange) (reply, error) {
	s.sessions.access[bearer(x.r.Header)].session.ended = true
	return reply{status: http.StatusNoContent}, nil
}

// ExpireAccessTokens makes every access token that there is expire now, so that
// the next call with one gets 401 token_expired. Refresh tokens go on working.
func (s *Server) ExpireAccessTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.sessions.access {
		t.expiresAt = s.time()
	}
}
