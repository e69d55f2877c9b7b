package idempotency

import (
	"net/http"
	"strings"
)

// recorder holds a handler's answer.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the first final status; what comes before it is not said.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.body = append(r.body, b...)
	return len(b), nil
}

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// answer returns what the handler has said, or nil if it has not returned. The
// content type that net/http would guess is kept, too: another release might
// guess another.
func (m *middleware) answer(r *recorder, returned bool) *Answer {
	if !returned {
		return nil
	}
	if _, ok := r.header["Content-Type"]; !ok && len(r.body) > 0 && r.header.Get("Content-Encoding") == "" {
		r.header.Set("Content-Type", http.DetectContentType(r.body))
	}
	return &Answer{
		Status: r.code(), ContentType: r.header.Get("Content-Type"), Header: m.keep(r.header), Body: r.body,
	}
}

// keep picks the headers that are kept: Content-Encoding, without which the
// body means nothing, and those of the policy.
func (m *middleware) keep(h http.Header) map[string]string {
	var kept map[string]string
	for _, name := range append([]string{"Content-Encoding"}, m.Policy.KeepHeaders...) {
		if value := strings.Join(h.Values(name), ", "); value != "" {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[http.CanonicalHeaderKey(name)] = value
		}
	}
	return kept
}
