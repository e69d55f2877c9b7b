package httpapi

import (
	"net/http"
	"net/url"
	"strings"
)

// isSlash reports whether a segment of an escaped path is the name "/".
func isSlash(segment string) bool { return strings.EqualFold(segment, "%2F") }

// serveSlash hands a request to its resource where a customer, a hold or the
// like is called "/": ServeMux takes such a segment for a trailing slash.
// segments are those of the escaped path.
func (s *service) serveSlash(w http.ResponseWriter, r *http.Request, segments []string) {
	at := make([]string, len(segments))
	for i, segment := range segments {
		at[i] = segment
		if isSlash(segment) {
			at[i] = "%2F%2F" // like "/" no word of a route, and to ServeMux a name like any other
		}
	}
	path := strings.Join(at, "/")
	unescaped, _ := url.PathUnescape(path) // never an error: the path was parsed
	found, pattern := s.mux.Handler(&http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: unescaped, RawPath: path}})
	// The values come from the path itself, never from what stood in for it.
	for i, word := range strings.Split(pattern, "/") {
		if strings.HasPrefix(word, "{") {
			value, _ := url.PathUnescape(segments[i])
			r.SetPathValue(strings.Trim(word, "{}"), value)
		}
	}
	found.ServeHTTP(w, r)
}
