package httpapi

import (
	"net/http"
	"strings"
)

// originAllowed reports whether a browser token may be used by a request with
// these Origin headers. An empty list allows any; a request without the header
// does not come from a page of another site.
func originAllowed(allowed, origin []string) bool {
	if len(allowed) == 0 || len(origin) == 0 || (len(origin) == 1 && origin[0] == "") {
		return true
	}
	if len(origin) > 1 {
		return false
	}
	from := canonicalOrigin(origin[0])
	for _, a := range allowed {
		if canonicalOrigin(a) == from {
			return true
		}
	}
	return false
}

// canonicalOrigin returns scheme://host[:port] in lower case and without the
// scheme's own port.
func canonicalOrigin(origin string) string {
	o := strings.ToLower(origin)
	if strings.HasPrefix(o, "https://") {
		return strings.TrimSuffix(o, ":443")
	}
	if strings.HasPrefix(o, "http://") {
		return strings.TrimSuffix(o, ":80")
	}
	return o
}

// The headers that let pages of any origin call and read. No cookie is ever
// looked at, so * gives away nothing.
var (
	corsOrigin  = []string{"*"}
	corsExpose  = []string{"X-Request-Id, X-Should-Retry, Retry-After, Idempotency-Replayed"}
	corsMethods = []string{"POST, OPTIONS"}
	corsHeaders = []string{"Authorization, Content-Type, Content-Encoding, Idempotency-Key, X-Request-Id"}
	// A day; browsers cap it as they see fit.
	corsMaxAge = []string{"86400"}
)

// setCORS is done for every answer, errors included.
func setCORS(h http.Header) {
	h["Access-Control-Allow-Origin"] = corsOrigin
	h["Access-Control-Expose-Headers"] = corsExpose
}

// preflight answers a browser that asks whether it may call. The token's own
// origins are enforced on the request: a preflight carries no token.
func preflight(x *exchange) answer {
	h := x.w.Header()
	h["Access-Control-Allow-Methods"] = corsMethods
	h["Access-Control-Allow-Headers"] = corsHeaders
	h["Access-Control-Max-Age"] = corsMaxAge
	return answer{status: http.StatusNoContent}
}
