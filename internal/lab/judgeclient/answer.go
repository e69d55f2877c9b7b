package judgeclient

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Codes that a server of ours can answer with and package api does not know
// yet.
const (
	codePrivacyJobActive api.Code = "privacy_job_active"
)

// Answer is what the scripted server does about one request.
type Answer struct {
	// Status is the HTTP status; 0 is a success, as the request's own.
	Status int
	// Code is error.code of the envelope.
	Code api.Code
	// Applied is details.applied of a 503; nil leaves it out.
	Applied any
	// Retryable overrides what package api says about the code.
	Retryable bool
	// RetryAfter is the wait that is asked for, in whole seconds; AsDate asks
	// for it as an HTTP date.
	// ScaledWait is in the client's unit; the longer of the two is asked for.
	RetryAfter, ScaledWait time.Duration
	AsDate                 bool
	// Foreign says that the answer is a proxy's: not in the envelope.
	Foreign bool
	// Lost cuts the connection after the request was read and the work done.
	Lost bool
	// Cut sends half of a success.
	Cut bool
	// Stuck never answers.
	Stuck bool
	// Slow says that it takes a while, so that requests can overlap.
	Slow bool
	// Rejected is how many items, from the first, a success rejects.
	Rejected int
	// Replayed marks the success as a replay.
	Replayed bool
}

// success reports whether the client hears of a success.
func (a Answer) success() bool {
	return !a.Lost && !a.Cut && !a.Stuck && (a.Status == 0 || a.Status/100 == 2)
}

// is reports whether the answer has a status, and one of the codes if any are
// given.
func (a Answer) is(status int, codes ...api.Code) bool {
	if a.Lost || a.Cut || a.Stuck || a.Status != status {
		return false
	}
	return len(codes) == 0 || slices.Contains(codes, a.Code)
}

// String names the answer in evidence.
func (a Answer) String() string {
	switch {
	case a.Lost:
		return "no answer"
	case a.Cut:
		return "answer cut short"
	case a.Stuck:
		return "never answered"
	case a.Foreign:
		return fmt.Sprintf("%d of a proxy", a.Status)
	case a.Status == 0 && a.Replayed:
		return "success, a replay"
	case a.Status == 0:
		return "success"
	case a.RetryAfter > 0:
		return fmt.Sprintf("%d %s with Retry-After", a.Status, a.Code)
	default:
		return fmt.Sprintf("%d %s", a.Status, a.Code)
	}
}

// The answers that scripts are made of.
var (
	success      = Answer{}
	replayed     = Answer{Replayed: true}
	internal     = Answer{Status: http.StatusInternalServerError, Code: api.CodeInternal, Retryable: true}
	slowInternal = Answer{Status: http.StatusInternalServerError, Code: api.CodeInternal, Retryable: true, Slow: true}
	unavailable  = Answer{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Retryable: true, Applied: "unknown", RetryAfter: time.Second}
	badGateway   = Answer{Status: http.StatusBadGateway, Foreign: true}
	lost         = Answer{Lost: true}
	cut          = Answer{Cut: true}
	stuck        = Answer{Stuck: true}
	privacyJob   = Answer{Status: http.StatusConflict, Code: codePrivacyJobActive, Retryable: true}
	expired      = Answer{Status: http.StatusUnauthorized, Code: api.CodeTokenExpired}
)

// limited is 429 with a wait: a second or two, or more if the client's own first
// delays are longer. As a date it is a second more, since it ends with the last
// whole second.
func limited(asDate bool) Answer {
	a := Answer{Status: http.StatusTooManyRequests, Code: api.CodeRateLimited, Retryable: true, RetryAfter: time.Second, ScaledWait: 2 * time.Second, AsDate: asDate}
	if asDate {
		a.RetryAfter, a.ScaledWait = 2*time.Second, 3*time.Second
	}
	return a
}

// refusal is an answer that a repeat cannot change.
type refusal struct {
	// name is how the check and the scenario end: not-repeated-400.
	name   string
	answer Answer
	// profiles that can meet it; none means all.
	profiles []Profile
	// envelope says that it only exists in our own envelope.
	envelope bool
	source   string
}

// refusals are the rows of the retry table that say no.
var refusals = []refusal{
	{name: "400", answer: Answer{Status: 400, Code: api.CodeInvalidJSON}, source: "retry table: 400 is not repeated, the repeat would get the same refusal"},
	{name: "401", answer: Answer{Status: 401, Code: api.CodeUnauthenticated}, source: "retry table: 401 is not repeated; an access token may be refreshed once and the call made anew"},
	{name: "402", answer: Answer{Status: 402, Code: api.CodePaymentRequired}, source: "retry table: 402 is not repeated, access is suspended or credits are used up"},
	{name: "403", answer: Answer{Status: 403, Code: api.CodeForbidden}, source: "retry table: 403 is not repeated, the rights do not suffice"},
	{name: "404", answer: Answer{Status: 404, Code: api.CodeNotFound}, source: "retry table: 404 is not repeated, there is no such object"},
	{name: "409", answer: Answer{Status: 409, Code: api.CodeConflict}, source: "retry table: 409 is not repeated unless details.retryable is true; read the state and decide anew"},
	{name: "413", answer: Answer{Status: 413, Code: api.CodePayloadTooLarge}, source: "retry table: 413 is not repeated as it is; make the body smaller"},
	{name: "415", answer: Answer{Status: 415, Code: api.CodeUnsupportedMediaType}, source: "retry table: 415 is not repeated"},
	{name: "422", answer: Answer{Status: 422, Code: api.CodeValidationFailed}, source: "retry table: 422 is not repeated, the repeat would get the same refusal"},
	{
		name: "quota", answer: Answer{Status: 429, Code: api.CodeQuotaExceeded}, profiles: []Profile{Events, Replay}, envelope: true,
		source: "retry table: 429 quota_exceeded is not repeated before the next period or a payment",
	},
}
