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
	CodeInternal             Code = "internal"
	CodeUnavailable          Code = "unavailable"
	CodeQueryTimeout         Code = "query_timeout"
)

// Spec says what a code means to a caller.
type Spec struct {
	Code Code
	// Status is the HTTP status the code is answered with.
	Status int
	// Retryable says whether the same request can succeed when it is simply
	// sent again; it is the default of details.retryable.
	Retryable bool
	// ShouldRetry is the X-Should-Retry header. It differs from Retryable
	// only where a stock client would do harm or waste time by repeating.
	ShouldRetry bool
	// When completes the sentence "is returned when …".
	When string
	// Do says what a caller should do about it.
	Do string
}

// Catalogue lists every code once, in order of status.
var Catalogue = []Spec{
	{
		CodeInvalidJSON, http.StatusBadRequest, false, false,
		"the body is not valid JSON in UTF-8, repeats a member name or nests deeper than 64 levels",
		"correct the body; a repeat gets the same refusal",
	},
	{
		CodeUnauthenticated, http.StatusUnauthorized, false, false,
		"no credential was sent, or it is unknown or revoked",
		"send a valid credential in the Authorization header",
	},
	{
		CodeTokenExpired, http.StatusUnauthorized, false, false,
		"the access token was valid once and has expired",
		"refresh the access token once and call anew",
	},
	{
		CodePaymentRequired, http.StatusPaymentRequired, false, false,
		"the organization is suspended",
		"settle the account",
	},
	{
		CodeForbidden, http.StatusForbidden, false, false,
		"the credential is of the wrong kind, its role is too low or its origin is not allowed",
		"use a credential that may call this method",
	},
	{
		CodeNotFound, http.StatusNotFound, false, false,
		"the path or object does not exist or belongs to another organization",
		"check the path and the id",
	},
	{
		CodeMethodNotAllowed, http.StatusMethodNotAllowed, false, false,
		"the path exists but not with this method",
		"use a method named in the Allow header",
	},
	{
		CodeRequestTimeout, http.StatusRequestTimeout, true, true,
		"the body arrived too slowly",
		"send the request again",
	},
	{
		CodePayloadTooLarge, http.StatusRequestEntityTooLarge, false, false,
		"the body, once inflated, is larger than details.limit_bytes",
		"send a smaller body, for example half of the batch",
	},
	{
		CodeUnsupportedMediaType, http.StatusUnsupportedMediaType, false, false,
		"the Content-Type or Content-Encoding is not one this method reads",
		"send JSON, plain or encoded with gzip or zstd",
	},
	{
		CodeValidationFailed, http.StatusUnprocessableEntity, false, false,
		"the request is well-formed but a member has a value that is not allowed; details.field names it",
		"correct the request; a repeat gets the same refusal",
	},
	{
		CodeRateLimited, http.StatusTooManyRequests, true, true,
		"the rate budget of the key is used up",
		"wait exactly Retry-After seconds and send the same request again",
	},
	{
		CodeInternal, http.StatusInternalServerError, true, true,
		"the server failed; for intake it means that nothing of the request was accepted",
		"send the whole request again after a delay, a bounded number of times",
	},
	{
		CodeUnavailable, http.StatusServiceUnavailable, true, true,
		"the server cannot do this now; details.applied says whether the change was made",
		"look at details.applied, then send the same request again after Retry-After",
	},
	{
		CodeQueryTimeout, http.StatusGatewayTimeout, true, false,
		"the query did not finish within its time budget",
		"narrow the date range or the filters, then repeat",
	},
}

// Lookup returns the Spec of a code. An unknown code is described as
// [CodeInternal], which is what the server answers with in that case.
func Lookup(code Code) Spec {
	internal := Spec{}
	for _, s := range Catalogue {
		if s.Code == code {
			return s
		}
		if s.Code == CodeInternal {
			internal = s
		}
	}
	return internal
}
