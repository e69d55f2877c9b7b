// Package http is the type of steps that make an HTTP call. It knows what a
// call must carry and what its answer means; package callhttp makes it.
//
// Invariants:
//   - a call carries the derived Idempotency-Key, which a flow cannot replace;
//   - an answer of a proxy in place of the server, 502 or 504, tells nothing of
//     what the server has done;
//   - what may have been done is not done again: a 500 is repeated only for
//     methods by which twice is as good as once;
//   - of a request only headers that are known to be harmless are in a trace, of
//     an answer and of a URL nothing whose name tells of a credential.
package http

import (
	"context"
)

// Caller makes calls. Errors are [*Error].
type Caller interface {
	Call(ctx context.Context, r *Request) (*Response, error)
}

// Request is one call.
type Request struct {
	Method, URL string
	Headers     map[string]string
	// Body is nil if there is none.
	Body []byte
}

// Response is what was answered.
type Response struct {
	Status int
	// Headers are by name in lower case, the first value of each.
	Headers map[string]string
	// Body is as much of the body as there is; Cut is empty if that is all, and
	// otherwise says why it is not. TooLarge says that it was cut here.
	Body     []byte
	Cut      string
	TooLarge bool
}

// Error says why there is no answer.
type Error struct {
	// Sent says that the request may have reached the other side.
	Sent bool
	// Retryable says that the same call may succeed later.
	Retryable bool
	// Message may be shown to the owner of the flow.
	Message string
	Err     error
}

func (f *Error) Error() string { return f.Message }

// Unwrap returns the cause.
func (f *Error) Unwrap() error { return f.Err }
