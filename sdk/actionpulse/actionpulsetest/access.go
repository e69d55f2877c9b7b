package actionpulsetest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/api"
)

// authenticate finds out who calls and whether they may.
func (s *Server) authenticate(x *exchange) error {
	if x.route.kinds == nil {
		return nil
	}
	given, inURL := bearer(x.r.Header), false
	if query := x.r.URL.Query()["key"]; given == "" && x.route.intake && len(query) == 1 {
		given, inURL = query[0], true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if x.caller, err = s.whose(given); err != nil {
		return err
	}
	if inURL && x.caller != browser {
		return refuse(api.CodeUnauthenticated, "only a browser token may be sent as ?key=")
	}
	if !slices.Contains(x.route.kinds, x.caller) {
		return refuse(api.CodeForbidden, "a credential of this kind may not call this method")
	}
	return nil
}

// whose returns the kind of a credential. It refuses with unauthenticated and
// token_expired.
func (s *Server) whose(given string) (kind, error) {
	known := map[string]kind{
		s.BrowserToken: browser, s.ServerKey: server, s.LegacyKey: legacy, s.ProjectKey: project, s.CIToken: ci,
	}
	if k, ok := known[given]; ok {
		return k, nil
	}
	return access, s.sessions.check(given, s.time())
}

// bearer returns the secret of the one Authorization header, or nothing.
func bearer(h http.Header) string {
	const scheme = "bearer "
	values := h["Authorization"]
	if len(values) != 1 || len(values[0]) <= len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return ""
	}
	return strings.TrimLeft(values[0][len(scheme):], " ")
}
