// Package retry owns the rules by which a client of ActionPulse repeats a
// request: which answers may be repeated by which kind of request ([Table],
// [Decide]), how long to wait ([Delays], Retry-After), when to stop ([Policy]),
// and that a credential whose requests fail has one under way at a time
// ([Lanes]).
//
// There are two ways to use it. [Transport] is an [http.RoundTripper] that does
// all of it for the requests of an http.Client. [Do] repeats anything: its
// caller makes the attempts and describes what came of each as an [Outcome].
//
// Invariants:
//   - a request is repeated unchanged: body, key and ids are the same;
//   - what changes something and has neither a key nor ids is never repeated
//     unless the server has said that nothing was done;
//   - a wait that the server names is kept exactly, one of ours grows;
//   - attempts and time are bounded;
//   - credentials and bodies are never logged and never in an error.
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
	// Applied is details.applied of the envelope: whether a change was made
	// although the request failed. It comes with 503, which does not mean that
	// nothing has happened.
	Applied Applied
}

// Applied says whether a failed request has changed something.
type Applied string

// What an answer may say. AppliedUnsaid, the zero value, is one that says
// nothing.
const (
	AppliedUnsaid  Applied = ""
	AppliedTrue    Applied = "true"
	AppliedFalse   Applied = "false"
	AppliedUnknown Applied = "unknown"
)

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

// Decide judges one attempt that did not succeed. The table rules, with these
// additions by what the server says: the header X-Should-Retry "false" forbids
// a repeat that the table allows, and "true" allows one where the table is
// silent, or where it only forbids it because the outcome might be unknown;
// details.applied false allows a mutation to be repeated, for nothing was done,
// and true forbids it, for all was. now is used to read a Retry-After that is a
// date.
func Decide(o Outcome, now time.Time) Verdict {
	action, reason := lookUp(o)
	forbids, allows := strings.EqualFold(o.ShouldRetry, "false"), strings.EqualFold(o.ShouldRetry, "true")
	readFirst := action == ReadFirst && o.Status >= http.StatusInternalServerError
	switch {
	case o.Err != nil:
	case action == Repeat && forbids:
		action, reason = Stop, "the server says not to repeat it"
	case readFirst && o.Applied == AppliedTrue:
		reason = "the change has been made: read the state"
	case readFirst && o.Applied == AppliedFalse && !forbids:
		action, reason = Repeat, "the server did nothing of it"
	case (action == Unlisted || action == ReadFirst) && o.Code != "" && allows:
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
