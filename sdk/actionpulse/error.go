package actionpulse

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Applied says whether a request that did not succeed has changed anything.
type Applied string

// What can be known of it.
const (
	// AppliedNo: nothing was changed.
	AppliedNo Applied = "no"
	// AppliedYes: the change was made, and will not be made again under its
	// key.
	AppliedYes Applied = "yes"
	// AppliedUnknown: no answer came, or one that does not say. Work under a
	// key may be sent again with that key; otherwise read the state first.
	AppliedUnknown Applied = "unknown"
)

// Error says that a request did not succeed. Every method returns one,
// possibly wrapped, when the server has refused or no answer came; use
// errors.As. It never holds a credential.
type Error struct {
	// Operation is the operationId of the API document.
	Operation string
	// Code is the server's; empty if no answer came or a proxy answered.
	Code api.Code
	// Status is the HTTP status; 0 if no answer came.
	Status int
	// Message is for a person to read.
	Message string
	// Retryable says whether the same request with the same key can succeed
	// if it is simply sent again; by the server's own word where it answered.
	Retryable bool
	// Applied says whether the change may have been made. It is AppliedNo for
	// requests that only read.
	Applied Applied
	// RequestID names the request in the server's log; empty if no answer
	// came.
	RequestID string
	// IdempotencyKey is the key that was sent; empty if there was none. A
	// later call with [WithKey] and the same request cannot do the work twice.
	IdempotencyKey string
	// Attempts counts how often the request was sent; 0 if it was refused
	// before. A repeat with a renewed access token is none.
	Attempts int
	// RetryAfter is the wait that the server asked for with its last answer; 0
	// if it named none.
	RetryAfter time.Duration
	// Details are what a program can go by; Raw is all of them as JSON.
	Details api.ErrorDetails
	Raw     json.RawMessage
	// Err is the cause: why no answer came, or could not be read, or why an
	// access token was not renewed; else nil.
	Err error
}

// Conflict tells of the work that an Idempotency-Key names already.
type Conflict struct {
	// Unit is that work.
	Unit api.Unit
	// Differs says which parts of the request differ from the first one with
	// the key.
	Differs []string
	// SameJSON says that only the spelling differs: the same members in
	// another order, or encoded by another program.
	SameJSON bool
}

// Conflict returns what is said of a key that names other work; false if that
// is not why the request was refused. Nothing was done.
func (e *Error) Conflict() (Conflict, bool) {
	if e.Code != api.CodeIdempotencyConflict && len(e.Details.Differs) == 0 {
		return Conflict{}, false
	}
	c := Conflict{Differs: e.Details.Differs, SameJSON: e.Details.SameJSON}
	if e.Details.Unit != nil {
		c.Unit = *e.Details.Unit
	}
	return c, true
}

// Balance returns what the customer has of the credit type, where that was not
// enough (insufficient_credits); false otherwise. The key stays free: top up,
// then the same request with the same key is fine.
func (e *Error) Balance() (api.Balance, bool) {
	if e.Details.Balance == nil {
		return api.Balance{}, false
	}
	return *e.Details.Balance, true
}

// Error says what was asked for, what came of it, and whether it may be done.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("actionpulse: " + e.Operation + ": ")
	if e.Code != "" {
		b.WriteString(string(e.Code) + ": ")
	}
	b.WriteString(e.Message)
	if e.Err != nil {
		b.WriteString(": " + strings.ReplaceAll(e.Err.Error(), "\n", "; "))
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (after %d attempts)", e.Attempts)
	}
	if e.Applied == AppliedUnknown {
		b.WriteString("; the outcome is unknown")
	}
	return b.String()
}

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }
