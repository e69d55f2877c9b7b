package httpapi

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/quota"
)

// Roles from low to high. A role that is not one of them may do nothing.
const (
	roleViewer = iota + 1
	roleMember
	roleAdmin
	roleOwner
)

var roles = map[string]int{"viewer": roleViewer, "member": roleMember, "admin": roleAdmin, "owner": roleOwner}

// access says who may call a route.
type access struct {
	// open routes take no credential.
	open  bool
	kinds []credential.Kind
	// role is the least role of an access token.
	role int
	// keyInURL says that a browser token may come as ?key=, since a beacon
	// cannot set headers.
	keyInURL bool
	// suspended says that a suspended organization may call it, too.
	suspended bool
	// cors says that pages of other origins may call it.
	cors bool
}

// authenticate finds out who calls and whether they may.
func (s *service) authenticate(x *exchange, a access) error {
	secret, inURL := bearer(x.r.Header), false
	if secret == "" && a.keyInURL && x.r.URL.RawQuery != "" {
		secret, inURL = keyInURL(x.r.URL.RawQuery), true
	}
	if secret == "" {
		return fault.New(api.CodeUnauthenticated, "send a credential: Authorization: Bearer …")
	}
	caller, err := s.Authenticator.Authenticate(x.r.Context(), secret)
	if err != nil && (!a.suspended || fault.CodeOf(err) != api.CodePaymentRequired) {
		return err
	}
	x.caller = caller
	return permit(x, a, inURL)
}

// permit decides whether the caller may call the route.
func permit(x *exchange, a access, inURL bool) error {
	c := &x.caller
	if inURL && c.Kind != credential.Browser {
		return fault.New(api.CodeUnauthenticated,
			"only a browser token may be sent as ?key=; URLs are logged, so replace this credential")
	}
	if !slices.Contains(a.kinds, c.Kind) {
		return fault.New(api.CodeForbidden, "a credential of kind %q may not call this method", c.Kind)
	}
	if c.Kind == credential.Access && roles[c.Role] < a.role {
		return fault.New(api.CodeForbidden, "the role %q may not call this method", c.Role)
	}
	if c.Kind == credential.Browser && !originAllowed(c.Origins, x.r.Header["Origin"]) {
		return fault.New(api.CodeForbidden, "this browser token may not be used from this origin")
	}
	return nil
}

// admit takes the request out of the caller's rate budget.
func (s *service) admit(x *exchange) error {
	q := quota.Request{Key: x.caller.Number, Rate: x.caller.Rate, Burst: x.caller.Burst}
	if x.caller.Kind == credential.Browser {
		q.Browser, q.Address = true, s.clientAddress(x.r)
	}
	return s.Limiter.Admit(q)
}

func (s *service) clientAddress(r *http.Request) netip.Addr {
	return quota.ClientAddress(r.RemoteAddr, r.Header["X-Forwarded-For"], s.TrustedProxies)
}

// bearer returns the secret of the Authorization header; empty if there is
// none, more than one, or one of another scheme.
func bearer(h http.Header) string {
	const scheme = "bearer "
	values := h["Authorization"]
	if len(values) != 1 || len(values[0]) <= len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return ""
	}
	return strings.TrimLeft(values[0][len(scheme):], " ")
}

// keyInURL returns the one key of a query string, or nothing.
func keyInURL(rawQuery string) string {
	query, err := url.ParseQuery(rawQuery)
	if err != nil || len(query["key"]) != 1 {
		return ""
	}
	return query["key"][0]
}
