// Package api holds what travels over the wire: error codes and the JSON
// shapes of requests and answers. It imports nothing of the server, so that
// clients can use it too.
package api

import "net/http"

// Code names one kind of refusal. Codes are part of the contract: a client
// may branch on them, so a code is never renamed and never changes meaning.
type Code string

// The codes this server can answer with. Each is described in [Catalogue].
const (
	CodeInvalidJSON          Code = "invalid_json"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeTokenExpired         Code = "token_expired"
	CodePaymentRequired      Code = "payment_required"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeRequestTimeout       Code = "request_timeout"
	CodePayloadTooLarge      Code = "payload_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeValidationFailed     Code = "validation_failed"
	CodeRateLimited          Code = "rate_limited"
	CodeQuotaExceeded        Code = "quota_exceeded"
	CodeTrialQuotaExceeded   Code = "trial_quota_exceeded"
	CodeInternal             Code = "internal"
	CodeUnavailable          Code = "unavailable"
	CodeQueryTimeout         Code = "query_timeout"

	CodeInvalidCredentials     Code = "invalid_credentials" //nolint:gosec // it names a refusal
	CodeConflict               Code = "conflict"
	CodePrivacyJobActive       Code = "privacy_job_active"
	CodeIdempotencyKeyRequired Code = "idempotency_key_required"
	CodeInvalidRequest         Code = "invalid_request"
	CodeIdempotencyConflict    Code = "idempotency_conflict"
	CodeCustomerNotFound       Code = "customer_not_found"
	CodeInsufficientCredits    Code = "insufficient_credits"

	CodeFlowNotFound     Code = "flow_not_found"
	CodeInvalidFlowInput Code = "invalid_flow_input"
	CodeModelError       Code = "model_error"
	CodeStepFailed       Code = "step_failed"
	CodeExecutionTimeout Code = "execution_timeout"
	CodeOutcomeUnknown   Code = "outcome_unknown"
)

// KeyFate is what became of the Idempotency-Key that a refused request
// carried.
type KeyFate string

// What can become of a key. It is empty where no operation that reads one can
// answer with the code.
const (
	// KeyUntouched: the refusal was made before the key was looked up. The
	// key is what it was before, free or taken.
	KeyUntouched KeyFate = "untouched"
	// KeyFree: the key names no work, and may be sent again with any body.
	KeyFree KeyFate = "free"
	// KeyTaken: the key names work that exists. It can be used for nothing
	// else.
	KeyTaken KeyFate = "taken"
	// KeyUnknown: the work may exist. The same request with the same key is
	// safe: it does the work once, or replays it.
	KeyUnknown KeyFate = "unknown"
)

// Spec says what a code means to a caller when it comes with a status.
type Spec struct {
	Code Code
	// Status is the HTTP status the code is answered with.
	Status int
	// Retryable says whether the same request can succeed when it is simply
	// sent again; it is the default of details.retryable.
	Retryable bool
	// ShouldRetry is the X-Should-Retry header. It differs from Retryable
	// only where a stock client would do harm or waste time by repeating. It
	// is false, whatever this says, where an operation that changes something
	// without a key or ids may have been carried out.
	ShouldRetry bool
	// When completes the sentence "is returned when …".
	When string
	// Do says what a caller should do about it.
	Do string
	// Key says what became of an Idempotency-Key.
	Key KeyFate
}

// Catalogue lists every code with every status it comes with, in order of
// status. A code's usual status comes before its others.
var Catalogue = []Spec{
	{
		CodeInvalidJSON, http.StatusBadRequest, false, false,
		"the body is not valid JSON in UTF-8, repeats a member name or nests deeper than 64 levels",
		"correct the body; a repeat gets the same refusal",
		KeyFree,
	},
	{
		CodeIdempotencyKeyRequired, http.StatusBadRequest, false, false,
		"the operation must have an Idempotency-Key and the header is absent or empty",
		"send a key composed from the unit of work, the same on every attempt",
		KeyUntouched,
	},
	{
		CodeUnauthenticated, http.StatusUnauthorized, false, false,
		"no credential was sent, or it is unknown or revoked; or a refresh token is unknown, spent or expired",
		"send a valid credential in the Authorization header",
		KeyUntouched,
	},
	{
		CodeInvalidCredentials, http.StatusUnauthorized, false, false,
		"the email or the password is wrong at login, or the password where one is asked for",
		"log in with other credentials; a repeat gets the same refusal and counts as another attempt",
		"",
	},
	{
		CodeTokenExpired, http.StatusUnauthorized, false, false,
		"the access token was valid once and has expired",
		"refresh the access token once and call anew",
		KeyUntouched,
	},
	{
		CodePaymentRequired, http.StatusPaymentRequired, false, false,
		"the organization is suspended",
		"settle the account",
		KeyUntouched,
	},
	{
		CodeInsufficientCredits, http.StatusPaymentRequired, false, false,
		"not enough of the customer's credits are available; details.balance says what is there",
		"top the customer up, then send the same request with the same key",
		KeyFree,
	},
	{
		CodeForbidden, http.StatusForbidden, false, false,
		"the credential is of the wrong kind, its role is too low or its origin is not allowed",
		"use a credential that may call this method",
		KeyUntouched,
	},
	{
		CodeNotFound, http.StatusNotFound, false, false,
		"the path or object does not exist or belongs to another organization",
		"check the path and the id",
		KeyFree,
	},
	{
		CodeCustomerNotFound, http.StatusNotFound, false, false,
		"the project has no such customer; a topup makes one",
		"top the customer up first; the key can be used again",
		KeyFree,
	},
	{
		CodeFlowNotFound, http.StatusNotFound, false, false,
		"the project has no such flow or version, or the flow is archived",
		"publish the flow, or correct its name; the key can be used again",
		KeyFree,
	},
	{
		CodeMethodNotAllowed, http.StatusMethodNotAllowed, false, false,
		"the path exists but not with this method",
		"use a method named in the Allow header",
		"",
	},
	{
		CodeRequestTimeout, http.StatusRequestTimeout, true, true,
		"the body arrived too slowly",
		"send the request again",
		KeyUntouched,
	},
	{
		CodeConflict, http.StatusConflict, false, false,
		"the request does not fit the present state of what it would change",
		"read the state, decide anew",
		"",
	},
	{
		CodePrivacyJobActive, http.StatusConflict, true, true,
		"a privacy job about the person, or about somebody of the project, is not finished; details.job_id names it",
		"wait Retry-After seconds and send the same request again",
		"",
	},
	{
		CodeIdempotencyConflict, http.StatusConflict, false, false,
		"the Idempotency-Key was already used with a different request",
		"look at details.unit, the work that the key names; for other work use another key",
		KeyTaken,
	},
	{
		CodePayloadTooLarge, http.StatusRequestEntityTooLarge, false, false,
		"the body, once inflated, is larger than details.limit_bytes",
		"send a smaller body, for example half of the batch",
		KeyUntouched,
	},
	{
		CodeUnsupportedMediaType, http.StatusUnsupportedMediaType, false, false,
		"the Content-Type or Content-Encoding is not one this method reads",
		"send JSON, plain or encoded with gzip or zstd",
		KeyUntouched,
	},
	{
		CodeValidationFailed, http.StatusUnprocessableEntity, false, false,
		"the request is well-formed but a member has a value that is not allowed; details.field names it",
		"correct the request; a repeat gets the same refusal",
		KeyFree,
	},
	{
		CodeValidationFailed, http.StatusConflict, false, false,
		"the Idempotency-Key of a release marker was already used with another body; details.differs names its members",
		"send the body as it was, or use another key for another deploy",
		KeyTaken,
	},
	{
		CodeInvalidRequest, http.StatusUnprocessableEntity, false, false,
		"the Idempotency-Key of keyed work is malformed, its body has a member that is not allowed (details.field names it), or the definition of a flow is not valid (details.issues lists why)",
		"correct the request, then send it with the same key or another",
		KeyFree,
	},
	{
		CodeInvalidFlowInput, http.StatusUnprocessableEntity, false, false,
		"an execution was created and its input does not fit the flow's schema; nothing was run or charged",
		"send corrected input with a new key; a repeat with this one reads the failed execution",
		KeyTaken,
	},
	{
		CodeRateLimited, http.StatusTooManyRequests, true, true,
		"the rate budget of the key is used up, or a password was wrong too often",
		"wait exactly Retry-After seconds and send the same request again",
		KeyUntouched,
	},
	{
		CodeQuotaExceeded, http.StatusTooManyRequests, false, false,
		"the organization's plan allows no more this month of what details.resource names; nothing of the request was taken",
		"keep what is to be sent until details.resets_at, or until the organization has another plan",
		"",
	},
	{
		CodeTrialQuotaExceeded, http.StatusTooManyRequests, false, false,
		"the same of a trial plan",
		"keep what is to be sent until the organization has another plan, or until details.resets_at",
		"",
	},
	{
		CodeInternal, http.StatusInternalServerError, true, true,
		"the server failed; for intake it means that nothing of the request was accepted",
		"send the whole request again after a delay, a bounded number of times",
		KeyUnknown,
	},
	{
		CodeModelError, http.StatusBadGateway, false, false,
		"an execution failed because a language model refused a call or answered with an error",
		"look at the trace of details.execution_id; to run it again use a new key",
		KeyTaken,
	},
	{
		CodeStepFailed, http.StatusBadGateway, false, false,
		"an execution failed in a step: an HTTP call was refused, or an expression could not be evaluated",
		"look at the trace of details.execution_id; to run it again use a new key",
		KeyTaken,
	},
	{
		CodeOutcomeUnknown, http.StatusBadGateway, false, false,
		"an execution failed because a call of a step was interrupted, so that nobody knows what it has done",
		"look at the trace for the derived key of the call, ask the callee, then decide; to run it again use a new key",
		KeyTaken,
	},
	{
		CodeUnavailable, http.StatusServiceUnavailable, true, true,
		"the server cannot do this now; details.applied says whether the change was made",
		"look at details.applied, then send the same request again after Retry-After",
		KeyUnknown,
	},
	{
		CodeExecutionTimeout, http.StatusGatewayTimeout, false, false,
		"an execution did not end within the time limit of its flow",
		"look at the trace of details.execution_id; to run it again use a new key",
		KeyTaken,
	},
	{
		CodeQueryTimeout, http.StatusGatewayTimeout, true, false,
		"the query did not finish within its time budget",
		"narrow the date range or the filters, then repeat",
		"",
	},
}

// Lookup returns the Spec of a code with its usual status. An unknown code is
// described as [CodeInternal], which is what the server answers with in that
// case.
func Lookup(code Code) Spec {
	return LookupStatus(code, 0)
}

// LookupStatus returns the Spec of a code that comes with a status, and the
// one of [Lookup] if the code never comes with it.
func LookupStatus(code Code, status int) Spec {
	var usual, internal Spec
	for _, s := range Catalogue {
		if s.Code == code && s.Status == status {
			return s
		}
		if s.Code == code && usual.Code == "" {
			usual = s
		}
		if s.Code == CodeInternal {
			internal = s
		}
	}
	if usual.Code == "" {
		return internal
	}
	return usual
}
