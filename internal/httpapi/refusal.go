package httpapi

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// envelope is the one shape of every error.
type envelope struct {
	Error envelopeError `json:"error"`
}

type envelopeError struct {
	Code      api.Code       `json:"code"`
	Message   string         `json:"message"`
	RequestID string         `json:"request_id"`
	Details   map[string]any `json:"details"`
}

// defaultWait is the Retry-After of a refusal that must have one and does not
// say how long.
const defaultWait = time.Second

// refuse turns an error into its answer and sets the headers that go with it.
// What is not a fault is an internal error whose text stays in the log.
func (s *service) refuse(x *exchange, err error) answer {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.Wrap(api.CodeInternal, err, "the server failed")
	}
	spec := api.LookupStatus(f.Code, f.Status)
	details := refusalDetails(x, f, spec)
	retryable, _ := details["retryable"].(bool)
	h := x.w.Header()
	h.Set("X-Should-Retry", strconv.FormatBool(retryable && spec.ShouldRetry == spec.Retryable && !mayBeDone(x, spec, details)))
	if wait := retryAfter(f); wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	if spec.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	e := envelope{envelopeError{Code: spec.Code, Message: f.Message, RequestID: x.requestID, Details: details}}
	body, err := marshal(e)
	if err != nil {
		s.Log.Error("details of an error are not JSON", "request_id", x.requestID, "err", err)
		e.Error.Details = map[string]any{"retryable": retryable}
		body, _ = json.Marshal(e) //nolint:errchkjson // strings and a bool always marshal
	}
	return answer{status: spec.Status, body: body}
}

// refusalDetails completes what the fault says with what its code implies.
func refusalDetails(x *exchange, f *fault.Error, spec api.Spec) map[string]any {
	details := maps.Clone(f.Details)
	if details == nil {
		details = map[string]any{}
	}
	if _, ok := details["retryable"].(bool); !ok {
		details["retryable"] = spec.Retryable
	}
	if _, ok := details["applied"]; !ok && spec.Code == api.CodeUnavailable && x.effect != reads {
		details["applied"] = fault.AppliedUnknown
		if !x.begun {
			details["applied"] = false
		}
	}
	if x.keyState != "" && (x.keyState != api.KeyFree || !unknownOutcome(spec, details)) {
		details["key"] = x.keyState
	}
	return details
}

// mayBeDone reports whether what the request asked for may have been done,
// where a repeat could do it a second time.
func mayBeDone(x *exchange, spec api.Spec, details map[string]any) bool {
	return x.effect == mutates && x.begun && unknownOutcome(spec, details)
}

// unknownOutcome reports whether a refusal leaves open that work was done. A
// key that was free may then be taken.
func unknownOutcome(spec api.Spec, details map[string]any) bool {
	return (spec.Code == api.CodeInternal || spec.Code == api.CodeUnavailable) && details["applied"] != false
}

// retryAfter is how long the caller is asked to wait, 0 if it is not.
func retryAfter(f *fault.Error) time.Duration {
	if f.RetryAfter > 0 {
		return f.RetryAfter
	}
	if f.Code == api.CodeRateLimited || f.Code == api.CodeUnavailable {
		return defaultWait
	}
	return 0
}
