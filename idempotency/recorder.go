package idempotency

import (
	"net/http"
	"strconv"
	"strings"
)

// recorder holds a handler's answer.
type recorder struct {
	header http.Header
	// sent is the header as it was when the handler began its answer; what it
	// changes afterwards is not said.
	sent   http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the first final status; what comes before it is not said.
// It panics where net/http does: a status that can never be said must not be
// recorded as an answer.
func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic("idempotency: invalid WriteHeader code " + strconv.Itoa(status))
	}
	if r.status == 0 && status >= http.StatusOK {
		r.status, r.sent = status, r.header.Clone()
	}
}

// said is the header of the answer.
func (r *recorder) said() http.Header {
	if r.status == 0 {
		return r.header
	}
	return r.sent
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
	h := r.said()
	if _, ok := h["Content-Type"]; !ok && len(r.body) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(r.body))
	}
	return &Answer{Status: r.code(), ContentType: h.Get("Content-Type"), Header: m.keep(h), Body: r.body}
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
