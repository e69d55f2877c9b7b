package idempotency

import (
	"net/http"
	"time"
)

// ReleaseMarker is the policy of deploy markers: keys of 8 to 128 visible ASCII
// characters, bodies compared by value, member by member, and a repeat gets
// the marker as it is now with status 200. Keys are kept for ever.
//
// Source: CONTRACT.md §4.
func ReleaseMarker() Policy {
	malformed := Refusal{
		http.StatusUnprocessableEntity, "validation_failed",
		"send exactly one Idempotency-Key of 8 to 128 visible ASCII characters without commas",
	}
	return Policy{
		Namespace: "marker",
		Key:       KeyRule{Required: true, MinLength: 8, MaxLength: 128, VisibleASCII: true, Without: ","},
		Compare: NormalJSON(
			Field{Name: "environment", Default: `"production"`},
			Field{Name: "ts", Kind: Timestamp},
		),
		Takes:        OnSuccess,
		Repeat:       CurrentResource,
		ReplayStatus: http.StatusOK,
		Refusals: Refusals{
			Missing: malformed, Malformed: malformed,
			Conflict: Refusal{
				http.StatusConflict, "validation_failed",
				"the Idempotency-Key was already used with a different request body",
			},
			Running: Refusal{http.StatusConflict, "conflict", "the first request with this key is still running"},
		},
	}
}

// The words of keyed work.
const (
	workNamespace = "work"
	workConflict  = "The Idempotency-Key was already used with a different request body"
)

// CreditMovement is the policy of movements of credits: only a success takes
// the key; while the first answer is kept a repeat is compared byte by byte
// and answered byte for byte; for ever after that it is compared by the facts
// of the request (which should name method and customer), credit type and
// amount. It shares its namespace with [Execution].
//
// Source: CONTRACT.md §5.
func CreditMovement(keepAnswer time.Duration) Policy {
	p := work()
	p.Takes = OnSuccess
	p.Repeat = FirstAnswer
	p.Retention = Retention{
		Answer: keepAnswer,
		Tombstone: ChosenFields(
			Field{Name: "credit_type"},
			Field{Name: "amount", Kind: Decimal},
		),
	}
	return p
}

// Execution is the policy of flow runs: the existence of an execution takes
// the key, bodies are compared byte by byte for ever, and a repeat gets the
// execution as it is now with status 200. It shares its namespace with
// [CreditMovement].
//
// Source: CONTRACT.md §5.
func Execution() Policy {
	p := work()
	p.Takes = OnResource
	p.Repeat = CurrentResource
	p.ReplayStatus = http.StatusOK
	return p
}

// work is what all keyed work of a project has in common.
func work() Policy {
	return Policy{
		Namespace: workNamespace,
		Key:       KeyRule{Required: true, MaxLength: 190},
		Compare:   RawBytes(),
		Refusals: Refusals{
			Missing: Refusal{
				http.StatusBadRequest, "idempotency_key_required",
				"this operation needs an Idempotency-Key that names the unit of work",
			},
			Malformed: Refusal{
				http.StatusUnprocessableEntity, "invalid_request",
				"send exactly one Idempotency-Key of at most 190 characters, UTF-8, without control characters",
			},
			Conflict: Refusal{http.StatusConflict, "idempotency_conflict", workConflict},
			Running:  Refusal{http.StatusConflict, "idempotency_conflict", "the first request with this key is still running"},
		},
	}
}

// IETF is a profile of draft-ietf-httpapi-idempotency-key-header: the header is
// a quoted string, a missing key is 400, a key used with another payload 422,
// and one whose first request is still running 409. Every answer takes the
// key, and the key is forgotten with the answer after keep, the draft's
// expiration policy.
func IETF(keep time.Duration) Policy {
	return Policy{
		Namespace:   "ietf",
		Key:         KeyRule{Required: true, MinLength: 1, MaxLength: DefaultMaxLength, VisibleASCII: true, Quoted: true},
		Compare:     RawBytes(),
		Takes:       OnAnswer,
		Repeat:      FirstAnswer,
		KeepHeaders: []string{"Location", "ETag"},
		Retention:   Retention{Answer: keep, Key: keep},
		Refusals: Refusals{
			Missing: Refusal{http.StatusBadRequest, "idempotency_key_missing", "Idempotency-Key is missing"},
			Malformed: Refusal{
				http.StatusBadRequest, "idempotency_key_malformed",
				`Idempotency-Key must be one quoted string, like "8e03978e-40d5-43e8-bc93-6894a57f9324"`,
			},
			Conflict: Refusal{http.StatusUnprocessableEntity, "idempotency_key_reused", "Idempotency-Key is already used"},
			Running:  Refusal{http.StatusConflict, "idempotency_key_in_use", "A request is outstanding for this Idempotency-Key"},
		},
	}
}
