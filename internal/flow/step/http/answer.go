package http

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
	"github.com/actionpulse/actionpulse/retry"
)

// The status by which a server says that it has failed at whatever point; the
// first by which a proxy says that it knows nothing of the server, and the one
// among those around it that says something else.
const (
	statusFailure     = 500
	statusBadGateway  = 502
	statusUnavailable = 503
)

// idempotent are the methods by which twice is as good as once.
var idempotent = []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}

// result judges an answer.
func (p *program) result(response *Response, call *step.Call, now time.Time) (step.Result, error) {
	call.Status = response.Status
	call.ProviderRequestID = cmp.Or(response.Headers["x-request-id"], response.Headers["request-id"])
	body, encoding := decodeBody(response)
	said := map[string]any{"status": int64(response.Status), "headers": shownAnswer(response.Headers), "body": body, "encoding": encoding}
	var err error
	if call.Response, err = encode(said); err != nil {
		return step.Result{}, &step.Error{Code: api.CodeStepFailed, Message: "the answer cannot be kept", Call: call, Err: err}
	}
	if !p.succeeds(response.Status) {
		return step.Result{}, p.refusal(response, call, now)
	}
	if response.Cut != "" {
		failure := &step.Error{Code: api.CodeStepFailed, Message: response.Cut, Outcome: step.Unknown, Retryable: true, Call: call}
		if response.TooLarge { // it was answered, and would be answered alike
			failure.Outcome, failure.Retryable = step.Refused, false
		}
		return step.Result{}, failure
	}
	headers := make(map[string]any, len(response.Headers))
	for name, value := range response.Headers {
		headers[name] = strings.ToValidUTF8(value, "�")
	}
	return step.Result{Call: call, Value: map[string]any{
		"status": int64(response.Status), "headers": headers, "body": body, "encoding": encoding,
	}}, nil
}

// refusal is what follows from a status that is no success: what package retry
// says of requests with a key, answered in a foreign form. From 502 on, but
// for 503, it may be a proxy that has lost the server, which may be at work.
// A 500 may come after the work, so it is repeated only where twice is as good
// as once: nobody knows whether the server knows the key.
func (p *program) refusal(response *Response, call *step.Call, now time.Time) *step.Error {
	verdict := retry.Decide(retry.Outcome{
		Kind: retry.Keyed, Status: response.Status,
		ShouldRetry: response.Headers["x-should-retry"], RetryAfter: response.Headers["retry-after"],
	}, now)
	e := &step.Error{
		Code: api.CodeStepFailed, Message: fmt.Sprintf("the answer was %d", response.Status), Retryable: verdict.Retry, Call: call,
	}
	if response.Status == statusFailure && !slices.Contains(idempotent, p.method) {
		e.Retryable = false
	}
	if e.Retryable && verdict.Exact {
		e.After = verdict.Wait
	}
	if response.Status >= statusBadGateway && response.Status != statusUnavailable {
		e.Outcome = step.Unknown
	}
	if response.Status >= 300 && response.Status < 400 {
		e.Message += ": no redirect is followed"
	}
	return e
}

// failed is why there is no answer.
func failed(err error, call *step.Call) error {
	f, ok := errors.AsType[*Error](err)
	if !ok {
		return &step.Error{Code: api.CodeStepFailed, Message: "the server has failed to make the call", Outcome: step.Unknown, Call: call, Err: err}
	}
	e := &step.Error{Code: api.CodeStepFailed, Message: f.Message, Outcome: step.NotSent, Retryable: f.Retryable, Call: call, Err: f.Err}
	if f.Sent {
		e.Outcome = step.Unknown
	}
	return e
}

// decodeBody makes a value of a body, and says how: "json" if it says that it
// is JSON, and is; else "text" if it is UTF-8, else "base64". An empty one is
// null, "none".
func decodeBody(response *Response) (body any, encoding string) {
	if len(response.Body) == 0 {
		return nil, "none"
	}
	if isJSON(response.Headers[contentType]) {
		if value, err := template.Decode(response.Body); err == nil {
			return value, "json"
		}
	}
	if utf8.Valid(response.Body) {
		return string(response.Body), "text"
	}
	return base64.StdEncoding.EncodeToString(response.Body), "base64"
}
