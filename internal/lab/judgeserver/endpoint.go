package judgeserver

import (
	"context"
	"net/http"
)

// Endpoint is an operation that takes a key: what to send, and how to tell what
// came of it.
type Endpoint struct {
	// Name stands before the ids of its checks; empty for the only one.
	Name string
	// Method is that of the request, and URL its address for a unit of work.
	Method string
	URL    func(unit string) string
	// Header holds credentials and media type.
	Header http.Header
	// KeyHeader is the name of the key's header; empty means Idempotency-Key.
	KeyHeader string
	// KeyOptional says that a request without a key is allowed.
	KeyOptional bool
	// LongKey is a length of a key that is too long; 0 if there is none.
	LongKey int
	// Body is the body of a request, for a unit of work; Other is another one
	// that would be accepted, and Refused one that is refused before any work is
	// done. Other and Refused may be nil.
	Body, Other, Refused func(unit string) []byte
	// Prepare makes what a unit of work needs; it may be nil.
	Prepare func(ctx context.Context, unit string) error
	// Identify returns the id of the object that a successful answer is about;
	// nil if answers have none.
	Identify func(body []byte) (id string, ok bool)
	// Count returns how many objects of a unit there are; nil if that cannot be
	// asked.
	Count func(ctx context.Context, unit string) (int, error)
	// Exact says that a replay has the bytes of the first answer.
	Exact bool
	// Agree says whether what a unit has moved, such as a balance, is what so
	// many objects move: nil, or what is wrong. It may be nil.
	Agree func(ctx context.Context, unit string, objects int) error
}

func (e *Endpoint) id(of string) string {
	if e.Name == "" {
		return of
	}
	return e.Name + "-" + of
}

func (e *Endpoint) title(of string) string {
	if e.Name == "" {
		return of
	}
	return e.Name + ": " + of
}

func (e *Endpoint) label() string {
	if e.Name == "" {
		return "the endpoint"
	}
	return e.Name
}

func (e *Endpoint) keyHeader() string {
	if e.KeyHeader == "" {
		return "Idempotency-Key"
	}
	return e.KeyHeader
}
