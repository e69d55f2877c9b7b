// Package retry owns the rules by which a client of ActionPulse repeats a
// request: which answers may be repeated by which kind of request ([Table],
// [Decide]), how long to wait ([Delays], Retry-After) and when to stop
// ([Do]).
//
// It never speaks HTTP itself: the caller makes the request and describes
// what came of it as an [Outcome]. It never repeats two requests at once: Do
// is sequential, and a caller that sends in parallel keeps to one request
// after a failure until one succeeds.
//
// The package imports the standard library only.
package retry

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kind says what a request does, and so what a repeat of it could do.
type Kind uint8

// The kinds of requests. The zero value is the one repeated least.
const (
	// Mutation changes something and carries neither a key nor ids: a repeat
	// may do the work a second time.
	Mutation Kind = iota
	// Read changes nothing.
	Read
	// Event is an intake request whose every item carries an id.
	Event
	// Keyed is a request with an Idempotency-Key.
	Keyed
)

// Outcome is what came of one attempt.
type Outcome struct {
	// Kind is the kind of the request.
	Kind Kind
	// Err is set if there was no whole answer: the connection was refused or
	// reset, time ran out, the answer was cut short. The other members then
	// mean nothing.
	Err error
	// Status is the HTTP status.
	Status int
	// Code is error.code of the answer's envelope. It is empty if the answer
	// is not in the envelope, as when a proxy made it.
	Code string
	// ShouldRetry and RetryAfter are the headers X-Should-Retry and
	// Retry-After as they came.
	ShouldRetry string
	RetryAfter  string
}

// Succeeded reports whether the answer came and is a 2xx.
func (o Outcome) Succeeded() bool {
	return o.Err == nil && o.Status >= http.StatusOK && o.Status < http.StatusMultipleChoices
}

// Verdict is what to do after an attempt.
type Verdict struct {
	// Retry says that the same request may be sent again, unchanged.
	Retry bool
	// Action is the advice in full: what Retry false means.
	Action Action
	// Wait is how long to wait before the repeat, exactly and without
	// jitter, if Exact is true. Otherwise the caller's own growing delay
	// applies.
	Wait  time.Duration
	Exact bool
	// Reason says in words why, for a log.
	Reason string
}

// Decide judges one attempt that did not succeed. The table rules, with two
// additions by the header X-Should-Retry: "false" forbids a repeat that the
// table allows, and "true" allows one where the table is silent, or where it
// only forbids it because the outcome might be unknown. now is used to read a
// Retry-After that is a date.
func Decide(o Outcome, now time.Time) Verdict {
	action, reason := lookUp(o)
	switch {
	case o.Err != nil:
	case action == Repeat && strings.EqualFold(o.ShouldRetry, "false"):
		action, reason = Stop, "the server says not to repeat it"
	case (action == Unlisted || action == ReadFirst) && o.Code != "" && strings.EqualFold(o.ShouldRetry, "true"):
		action, reason = Repeat, "the server says that it may be repeated"
	}
	v := Verdict{Action: action, Reason: reason, Retry: action == Repeat}
	if v.Retry && o.Err == nil {
		v.Wait, v.Exact = ParseRetryAfter(o.RetryAfter, now)
	}
	return v
}

// maxSeconds bounds a Retry-After so that it fits a time.Duration: 68 years.
const maxSeconds = 1<<31 - 1

// ParseRetryAfter reads a Retry-After header: whole seconds or an HTTP date.
// A date that has passed is no wait. It reports false if the header is
// absent or cannot be read.
func ParseRetryAfter(header string, now time.Time) (time.Duration, bool) {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, maxSeconds)) * time.Second, true
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0, false
	}
	return max(0, date.Sub(now)), true
}
