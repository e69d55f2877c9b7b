package actionpulsetest

import (
	"bytes"
	"io"
	"net/http"
	"slices"

	"github.com/actionpulse/actionpulse/idempotency"
)

// Request is a request as it came in.
type Request struct {
	Method string
	// Path is as it was sent, with its query. Route is what it was taken for, such
	// as "POST /v1/track", empty if there is no such route.
	Path, Route string
	Header      http.Header
	// Body is as it was sent: not inflated.
	Body []byte
	// Key is the Idempotency-Key, empty if there was none, and Attempt says how
	// many requests with it there were by then, this one included; 0 without a key.
	Key     string
	Attempt int
	// Status is that of the answer; 0 if it was lost, or is not there yet.
	Status int
}

// Requests returns all requests that came in, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Attempts returns how many requests came with an Idempotency-Key.
func (s *Server) Attempts(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts[key]
}

// maxSeen is how much of a body is kept.
const maxSeen = 2 << 20

// see notes a request, and returns its number.
func (s *Server) see(x *exchange) int {
	body, _ := io.ReadAll(io.LimitReader(x.r.Body, maxSeen)) // what cannot be read here cannot be read later
	x.r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), x.r.Body), x.r.Body}
	one := Request{Method: x.r.Method, Path: x.r.URL.RequestURI(), Header: x.r.Header.Clone(), Body: body}
	if x.route != nil {
		one.Route = x.route.name()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.Key = x.r.Header.Get(idempotency.Header); one.Key != "" {
		s.attempts[one.Key]++
		one.Attempt = s.attempts[one.Key]
	}
	s.requests = append(s.requests, one)
	return len(s.requests) - 1
}

// answered notes how a request was answered.
func (s *Server) answered(number, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[number].Status = status
}
