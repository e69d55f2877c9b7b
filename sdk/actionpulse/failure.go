package actionpulse

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// failure is an error of a call that has changed nothing.
func (c call) failure(message string) *Error {
	return &Error{Operation: c.operation, Message: message, Applied: AppliedNo, IdempotencyKey: c.key}
}

// refusedHere is the error of a call that is not sent, because the server
// would refuse it or take it for another.
func (c call) refusedHere(err error) *Error {
	e := c.failure(err.Error())
	e.Code = api.CodeInvalidRequest
	return e
}

// lost is the error of a call to which no answer came.
func (c call) lost(t *trail, err error) *Error {
	// What net/http puts around an error repeats the URL.
	if around, ok := errors.AsType[*url.Error](err); ok {
		err = around.Err
	}
	e := c.failure("no answer came")
	e.Attempts = t.sent
	if t.sent == 0 {
		e.Message = "it was not sent"
	} else if ended, ok := errors.AsType[*retry.Error](err); ok && ended.Outcome.Err != nil {
		err, e.Attempts = ended.Outcome.Err, ended.Attempts
	}
	e.Err = err
	e.Retryable = c.kind != retry.Mutation || !t.unknown
	if t.unknown && c.kind != retry.Read {
		e.Applied = AppliedUnknown
	}
	return e
}

// refused is the error of a call whose answer says no.
func (l *link) refused(c *call, t *trail, r *reply) *Error {
	said := readEnvelope(r.body)
	e := c.failure(said.Message)
	e.Code, e.Status, e.RequestID, e.Attempts = said.Code, r.status, said.RequestID, r.attempts
	e.Details, e.Raw = said.Details, said.raw
	e.RetryAfter, _ = retry.ParseRetryAfter(r.header.Get("Retry-After"), l.now())
	e.Retryable = said.Details.Retryable
	if said.Code == "" {
		e.Message = fmt.Sprintf("%d %s, not from the server itself", r.status, http.StatusText(r.status))
		e.RequestID = r.header.Get("X-Request-Id")
		e.Retryable = retry.Decide(retry.Outcome{Kind: c.kind, Status: r.status}, time.Time{}).Retry
	}
	e.Applied = c.applied(t, r.status, said)
	if l.whyRejected != nil && r.status == http.StatusUnauthorized && !c.open {
		e.Err = l.whyRejected()
	}
	return e
}

// applied says whether any of the attempts may have made the change. What the
// last answer says of the key holds for all of them; without such a word an
// earlier attempt may have made it.
func (c call) applied(t *trail, status int, said envelope) Applied {
	last := appliedBy(c.kind, status, said)
	switch {
	case c.kind == retry.Read, last == AppliedYes:
		return last
	case said.Code == api.CodeIdempotencyConflict, said.Details.Key == api.KeyFree:
		return AppliedNo
	case t.unknown:
		return AppliedUnknown
	}
	return last
}

// CodeOf returns the code of an [*Error] in err's tree; empty if there is
// none.
func CodeOf(err error) api.Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}
