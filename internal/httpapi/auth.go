package httpapi

import (
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
)

// authLimit is the most that a body may hold whose sender is not known.
const authLimit = 16 << 10

var loginOperation = operation{
	id: "login", tag: tagAuth, summary: "Log in with email and password",
	description: "Begins a session. After too many failures of one email or from one client address, further attempts are " +
		"refused for a while without looking at the password. It works for suspended organizations, whose tokens are then " +
		"refused everywhere else.",
	request: api.Login{},
	replies: replyOK("Tokens for one organization.", api.Tokens{}),
	errors:  codes(api.CodeInvalidCredentials, api.CodeForbidden, api.CodeRateLimited),
}

func (s *service) login(x *exchange) (answer, error) {
	in, err := decode[api.Login](x)
	if err != nil {
		return answer{}, err
	}
	tokens, err := s.Sessions.Login(x.r.Context(), account.LoginParams{
		Email: in.Email, Password: in.Password, OrganizationID: textOf(in.OrganizationID), Client: s.client(x),
	})
	if err != nil {
		return answer{}, err
	}
	return tokensAnswer(tokens)
}

var refreshOperation = operation{
	id: "refresh", tag: tagAuth, summary: "Spend a refresh token for new tokens",
	description: "The old refresh token is spent. If it is used again, by whoever has a copy, the session ends with all its " +
		"tokens: so do not repeat a refresh whose answer was lost, log in. It works for suspended organizations, so that a user " +
		"can go on to another one.",
	request: api.Refresh{},
	replies: replyOK("The next tokens of the session.", api.Tokens{}),
	errors:  codes(api.CodeUnauthenticated, api.CodeForbidden),
}

func (s *service) refresh(x *exchange) (answer, error) {
	in, err := decode[api.Refresh](x)
	if err != nil {
		return answer{}, err
	}
	tokens, err := s.Sessions.Refresh(x.r.Context(), account.RefreshParams{
		RefreshToken: in.RefreshToken, OrganizationID: textOf(in.OrganizationID), Client: s.client(x),
	})
	if err != nil {
		return answer{}, err
	}
	return tokensAnswer(tokens)
}

func tokensAnswer(t account.Tokens) (answer, error) {
	return jsonAnswer(http.StatusOK, api.Tokens{
		AccessToken: t.AccessToken, RefreshToken: t.RefreshToken, ExpiresIn: int64(t.ExpiresIn / time.Second),
		OrganizationID: t.OrganizationID, UserID: t.UserID,
	})
}

var logoutOperation = operation{
	id: "logout", tag: tagAuth, summary: "End the session of the access token",
	description: "All tokens of the session end, the refresh token too.",
	replies:     replyNothing("It has ended."),
}

func (s *service) logout(x *exchange) (answer, error) {
	return changed(s.Sessions.Logout(x.r.Context(), s.actor(x), x.caller))
}

var changePasswordOperation = operation{
	id: "changePassword", tag: tagAuth, summary: "Change one's own password",
	description: "All other sessions of the user end. A wrong current password counts like a failed login.",
	request:     api.PasswordChange{},
	replies:     replyNothing("It is changed."),
	errors:      codes(api.CodeInvalidCredentials),
}

func (s *service) changePassword(x *exchange) (answer, error) {
	in, err := decode[api.PasswordChange](x)
	if err != nil {
		return answer{}, err
	}
	return changed(s.Sessions.ChangePassword(x.r.Context(), account.ChangePasswordParams{
		Caller: x.caller, Current: in.CurrentPassword, New: in.NewPassword, Client: s.client(x),
	}))
}

// client is where a request comes from.
func (s *service) client(x *exchange) account.Client {
	return account.Client{Address: s.clientAddress(x.r), RequestID: x.requestID}
}

// actor is the caller as the audit log names them.
func (s *service) actor(x *exchange) auditlog.Actor {
	a := auditlog.Actor{UserID: x.caller.UserID, RequestID: x.requestID}
	if address := s.clientAddress(x.r); address.IsValid() {
		a.Address = address.String()
	}
	return a
}

// changed is the answer to a change that has nothing to show.
func changed(err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}
