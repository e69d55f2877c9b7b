package actionpulsetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

// exchange is one request and what has been found out about it.
type exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	route *route
	// id is the X-Request-Id.
	id     string
	caller kind
	body   []byte
	key    string
	// fate is what became of the key; empty as long as that is not known.
	fate api.KeyFate
}

// reply is what a handler wants said.
type reply struct {
	status int
	body   []byte // nil for an answer without one
	// foreign says that the body is a text, and cut that the connection ends
	// before the answer.
	foreign, cut bool
}

// refusal is an error that the caller is told of.
type refusal struct {
	code    api.Code
	status  int // 0: the code's usual one
	message string
	details map[string]any
	wait    time.Duration // 0: what the code implies
}

func (r *refusal) Error() string { return string(r.code) + ": " + r.message }

// with returns r with one more detail.
func (r *refusal) with(name string, value any) *refusal {
	c := *r
	c.details = maps.Clone(r.details)
	if c.details == nil {
		c.details = map[string]any{}
	}
	c.details[name] = value
	return &c
}

func refuse(code api.Code, message string) *refusal { return &refusal{code: code, message: message} }

// invalidField is a validation_failed that names the member at fault.
func invalidField(field, message string) *refusal {
	return refuse(api.CodeValidationFailed, field+" "+message).with("field", field)
}

// invalidRequest is an invalid_request that names the member at fault.
func invalidRequest(field, message string) *refusal {
	return refuse(api.CodeInvalidRequest, field+" "+message).with("field", field)
}

// serve answers every request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(context.WithValue(r.Context(), serverKey{}, s))
	if !isClean(r.URL.EscapedPath()) || r.RequestURI == "*" {
		nothing.ServeHTTP(w, r)
		return
	}
	paths().ServeHTTP(w, r)
}

// serverKey is where the context of a request has its *Server.
type serverKey struct{}

// ServeHTTP answers a request to this path: as it is scripted, or by the rules.
func (res *resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, _ := r.Context().Value(serverKey{}).(*Server)
	x := &exchange{w: w, r: r, route: res.methods[r.Method], id: requestID(r)}
	w.Header().Set("X-Request-Id", x.id)
	if res.cors {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Expose-Headers", "X-Request-Id, X-Should-Retry, Retry-After, Idempotency-Replayed")
	}
	seen := s.see(x)
	a, err := s.meet(x, func() (reply, error) { return s.answer(res, x) })
	if err != nil {
		a = x.refused(err)
	}
	s.answered(seen, a.status)
	if a.cut {
		cut(w)
		return
	}
	x.write(a)
}

// answer finds the method, makes the refusals in their order, and lets the
// handler answer.
func (s *Server) answer(res *resource, x *exchange) (reply, error) {
	switch {
	case x.route != nil:
	case res.cors && x.r.Method == http.MethodOptions:
		h := x.w.Header()
		h.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Content-Encoding, Idempotency-Key, X-Request-Id")
		h.Set("Access-Control-Max-Age", "86400")
		return reply{status: http.StatusNoContent}, nil
	case res.methods != nil:
		x.w.Header().Set("Allow", res.allow)
		return reply{}, refuse(api.CodeMethodNotAllowed, "this path does not take this method")
	default:
		if !s.quiet {
			s.t.Errorf("actionpulsetest: %s %s was asked for, which the fake does not have", x.r.Method, x.r.URL.Path)
		}
		return reply{}, refuse(api.CodeNotFound, "there is nothing at this path")
	}
	if err := s.authenticate(x); err != nil {
		return reply{}, err
	}
	if x.route.key != nil {
		key, refused := x.route.key.ParseKey(x.r.Header)
		if refused != nil {
			return reply{}, keyRefusal(refused)
		}
		x.key = key
	}
	if x.route.limit > 0 {
		if err := x.readBody(); err != nil {
			return reply{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.route.handle(s, x)
}

// requestID returns the caller's own id if it may be used, else a new one.
func requestID(r *http.Request) string {
	given := r.Header["X-Request-Id"]
	notVisible := func(c rune) bool { return c < '!' || c > '~' }
	if len(given) != 1 || given[0] == "" || len(given[0]) > 128 || strings.ContainsFunc(given[0], notVisible) {
		return newID()
	}
	return given[0]
}

// refused turns an error into its answer and sets the headers that go with it.
func (x *exchange) refused(err error) reply {
	f, ok := errors.AsType[*refusal](err)
	if !ok {
		f = refuse(api.CodeInternal, "the server failed")
	}
	spec := specOf(f)
	details := x.details(f, spec)
	retryable, _ := details["retryable"].(bool)
	unknown := (spec.Code == api.CodeInternal || spec.Code == api.CodeUnavailable) && details["applied"] != false
	mayBeDone := unknown && x.route != nil && x.route.mutates
	h := x.w.Header()
	h.Set("X-Should-Retry", strconv.FormatBool(retryable && spec.ShouldRetry == spec.Retryable && !mayBeDone))
	wait := f.wait
	if wait == 0 && (spec.Code == api.CodeRateLimited || spec.Code == api.CodeUnavailable) {
		wait = time.Second
	}
	if wait > 0 {
		x.retryAfter(wait)
	}
	status := spec.Status
	if f.status != 0 {
		status = f.status
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	body, err := marshal(map[string]any{"error": map[string]any{
		"code": f.code, "message": f.message, "request_id": x.id, "details": details,
	}})
	if err != nil { // details that a test has scripted
		body = []byte(err.Error())
	}
	return reply{status: status, body: body, foreign: err != nil}
}

// specOf is what the catalogue says of a refusal. A test may script a code that
// is not in it: that one is not retryable unless its details say so.
func specOf(f *refusal) api.Spec {
	if spec := api.LookupStatus(f.code, f.status); spec.Code == f.code {
		return spec
	}
	return api.Spec{Code: f.code, Status: f.status}
}

// details completes what a refusal says with what its code implies.
func (x *exchange) details(f *refusal, spec api.Spec) map[string]any {
	details := maps.Clone(f.details)
	if details == nil {
		details = map[string]any{}
	}
	if _, ok := details["retryable"].(bool); !ok {
		details["retryable"] = spec.Retryable
	}
	if _, ok := details["applied"]; !ok && spec.Code == api.CodeUnavailable && x.r.Method != http.MethodGet {
		details["applied"] = "unknown"
	}
	if x.fate != "" {
		details["key"] = x.fate
	}
	return details
}

// retryAfter asks the caller to wait, in whole seconds, rounded up.
func (x *exchange) retryAfter(d time.Duration) {
	x.w.Header().Set("Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10))
}

// replayed marks the answer as one to a repeat.
func (x *exchange) replayed() { x.w.Header().Set(idempotency.Replayed, "true") }

// write sends an answer.
func (x *exchange) write(a reply) {
	h := x.w.Header()
	if a.body != nil {
		h.Set("Content-Type", "application/json")
		if a.foreign {
			h.Set("Content-Type", "text/plain; charset=utf-8")
		}
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	if x.r.Method != http.MethodPost {
		h.Set("Cache-Control", "no-store")
	}
	x.w.WriteHeader(a.status)
	_, _ = x.w.Write(a.body) // that the client does not take it is its own affair
}

func jsonReply(status int, v any) (reply, error) {
	body, err := marshal(v)
	return reply{status: status, body: body}, err
}

// createdOr is 201 for what was made, else 200.
func createdOr(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// marshal returns v as JSON, with < > & as they are.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return out.Bytes(), err
}
