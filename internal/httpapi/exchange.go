package httpapi

import (
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// exchange is one request and what has been found out about it.
type exchange struct {
	w         http.ResponseWriter
	r         *http.Request
	resource  *resource
	requestID string
	began     time.Time
	// caller is whom the credential speaks for; zero on open routes.
	caller credential.Credential
	// body is the decoded body, nil on routes without one.
	body *buffer
	// unread says that the body has not been read to its end.
	unread bool
	// effect is what the request's route does.
	effect effect
	// begun says that the handler was called, so that an error may come after
	// a change.
	begun bool
	// invalid is the code of a body that its schema refuses; validation_failed
	// if empty.
	invalid api.Code
	// key is the Idempotency-Key, on keyed routes.
	key string
	// keyState is what became of the Idempotency-Key, "free" or "taken"; empty
	// as long as it is not known.
	keyState api.KeyFate
	// scratch is where an answer may be built; it is used again afterwards.
	scratch []byte
}

// answer is what a handler wants said.
type answer struct {
	status int
	// contentType is application/json if empty.
	contentType string
	// body may be nil for an answer without one.
	body []byte
	// stream, if set, writes the body, of unknown length, once the answer has
	// begun. When it fails the connection is cut.
	stream func(w io.Writer) error
}

// abortError ends the connection without an answer: there is nobody to answer,
// or nothing true to say.
type abortError struct {
	// status and code are how it is counted.
	status int
	code   string
	cause  error
}

func (e *abortError) Error() string { return e.code + ": " + e.cause.Error() }

func (e *abortError) Unwrap() error { return e.cause }

// clientGone says that the client has left.
func clientGone(cause error) error {
	const clientClosedRequest = 499
	return &abortError{status: clientClosedRequest, code: "client_gone", cause: cause}
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// maxScratch is the largest scratch that is kept for the next request.
const maxScratch = 64 << 10

// ServeHTTP answers one request to this path.
func (res *resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := res.service
	x := exchanges.Get().(*exchange)
	scratch := x.scratch[:0]
	if cap(scratch) > maxScratch {
		scratch = nil
	}
	*x = exchange{w: w, r: r, resource: res, began: s.Now(), scratch: scratch, unread: r.ContentLength != 0}
	defer s.release(x)
	res.metrics.Begin()
	x.requestID = s.requestID(r)
	w.Header()["X-Request-Id"] = []string{x.requestID}
	if res.cors {
		setCORS(w.Header())
	}
	a, err := s.run(x)
	s.finish(x, a, err)
}

// release takes back what the request used. By now nothing refers to it: the
// handler has returned, and where it did not return properly the body's bytes
// have been forgotten.
func (s *service) release(x *exchange) {
	s.bodies.put(x.body)
	x.w, x.r, x.body = nil, nil, nil
	exchanges.Put(x)
}

// run works out the answer. A panic becomes an error.
func (s *service) run(x *exchange) (a answer, err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = &abortError{code: "no_answer", cause: http.ErrAbortHandler}
		default:
			x.body.forget()
			s.Log.Error("panic", "request_id", x.requestID, "panic", p, "stack", string(debug.Stack()))
			err = fault.Wrap(api.CodeInternal, errors.New("panic"), "the server failed")
		}
	}()
	if err := s.limitBodyTime(x); err != nil {
		return answer{}, err
	}
	rt, ok := x.resource.methods[x.r.Method]
	switch {
	case ok:
		return s.call(x, rt)
	case x.resource.cors && x.r.Method == http.MethodOptions:
		return preflight(x), nil
	case x.resource.allow != nil:
		x.w.Header()["Allow"] = x.resource.allow
		return answer{}, fault.New(api.CodeMethodNotAllowed, "this path does not take this method")
	default:
		return answer{}, fault.New(api.CodeNotFound, "there is nothing at this path")
	}
}

// call makes the refusals in their order, then lets the handler answer.
func (s *service) call(x *exchange, rt route) (answer, error) {
	x.effect, x.invalid = rt.effect, rt.body.invalid
	if !rt.access.open {
		if err := s.authenticate(x, rt.access); err != nil {
			return answer{}, err
		}
		if err := s.admit(x); err != nil {
			return answer{}, err
		}
	}
	if rt.body.key != nil {
		if err := s.readKey(x, rt.body.key); err != nil {
			return answer{}, err
		}
	}
	if rt.body.limit > 0 {
		if err := s.readBody(x, rt.body); err != nil {
			return answer{}, err
		}
	}
	x.begun = true
	return rt.handle(s, x)
}

// requestID returns the caller's own id if it may be used, else a new one.
func (s *service) requestID(r *http.Request) string {
	given := r.Header["X-Request-Id"]
	if len(given) != 1 || len(given[0]) < 1 || len(given[0]) > 128 {
		return s.NewRequestID()
	}
	for _, c := range []byte(given[0]) {
		if c < '!' || c > '~' {
			return s.NewRequestID()
		}
	}
	return given[0]
}
