// Package openaitest is an OpenAI-compatible server for tests: it answers what
// it is told to, and keeps what it was asked.
package openaitest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Reply is one answer.
type Reply struct {
	// Status is 200 if it is 0.
	Status int
	// Kind is the Content-Type: application/json if empty.
	Kind   string
	Header map[string]string
	Body   string
	// Cut says that the connection ends after the body, before the answer does.
	Cut bool
}

// Stream is an answer of server-sent events.
func Stream(body string) Reply { return Reply{Kind: "text/event-stream; charset=utf-8", Body: body} }

// Request is what the server was asked.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// Server answers with its replies one after another, and with the last for
// ever.
type Server struct {
	// URL is the base URL of the API.
	URL string

	mu       sync.Mutex
	replies  []Reply
	requests []Request
}

// New starts a server that ends with the test.
func New(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	s := &Server{replies: replies}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/v1"
	return s
}

// Requests are all that came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	reply := s.take(Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	kind := reply.Kind
	if kind == "" {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	_, _ = io.WriteString(w, reply.Body)
	if reply.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// take notes a request and returns its reply.
func (s *Server) take(r Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.requests), len(s.replies)-1)
	s.requests = append(s.requests, r)
	return s.replies[n]
}
