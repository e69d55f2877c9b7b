// Package model owns what a flow knows of language models: the port to their
// providers, what a call is and what it has used. Providers are in the folders
// below: echo, which is part of the server, and openai, which speaks the wire
// format that most servers understand.
//
// Invariants:
//   - a call that may have reached the provider and has no definite answer is
//     reported as [Unknown], never as a failure that may be repeated freely;
//   - usage is what the provider has said, and never estimated;
//   - the secret of a provider leaves this server only in the header of a
//     request to that provider, and is encrypted where it is stored.
package model

import (
	"context"
	"encoding/json"
	"time"
)

// Provider completes chats.
type Provider interface {
	// Complete runs one chat completion. If the request streams, emit is called
	// with each part of the text as it comes; it never waits. Errors are
	// [*Error].
	Complete(ctx context.Context, r *Request, emit func(text string)) (*Completion, error)
}

// Request is one chat completion.
type Request struct {
	Model string
	// Messages are passed on as they are.
	Messages json.RawMessage
	// Options are further members of the request (temperature, tools,
	// response_format and so on), passed on as they are.
	Options map[string]json.RawMessage
	Stream  bool
	// Key is sent as Idempotency-Key.
	Key string
}

// Completion is what came of a request.
type Completion struct {
	// Text is the content of the message, empty if it has none.
	Text string
	// Message is the first choice's message, as the provider sent it, or put
	// together from a stream: a JSON object.
	Message      json.RawMessage
	FinishReason string
	// Model is the name by which the provider says it has answered.
	Model string
	Usage Usage
	// Status is the HTTP status it came with, 0 if it did not come by HTTP.
	Status int
	// RequestID is the provider's own name for the request, if it said.
	RequestID string
}

// Usage counts tokens. Input includes Cached, Output includes Reasoning.
type Usage struct {
	Input, Output, Cached, Reasoning int64
}

// Add returns the sum of two.
func (u Usage) Add(o Usage) Usage {
	return Usage{u.Input + o.Input, u.Output + o.Output, u.Cached + o.Cached, u.Reasoning + o.Reasoning}
}

// Outcome says what is known of a call that failed.
type Outcome uint8

// The outcomes.
const (
	// Refused: the provider has answered, and the answer is no success.
	Refused Outcome = iota
	// NotSent: the request has not reached anybody.
	NotSent
	// Unknown: it was sent, and no answer tells what has happened.
	Unknown
)

// Error is how a call fails.
type Error struct {
	Outcome Outcome
	// Message is fit for the owner of the flow: it holds no secret.
	Message string
	// Retryable says that the same request may succeed later, After how long
	// to wait before, if the provider has said so.
	Retryable bool
	After     time.Duration
	// Status is the HTTP status, 0 if there was none; RequestID and Usage are
	// what is known in spite of the failure.
	Status    int
	RequestID string
	Usage     Usage
	Err       error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
