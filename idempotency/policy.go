package idempotency

import (
	"net/http"
	"time"
)

// Policy says how one operation treats its keys. A policy is a value: two
// operations that share a namespace share their keys.
type Policy struct {
	// Namespace keeps the keys of unrelated operations apart: within one scope
	// a key names one unit of work in each namespace. At most 64 bytes.
	Namespace string
	Key       KeyRule
	// Compare says what makes a repeat the same request. It is asked as long
	// as the first answer is kept, and for ever if Retention has no Tombstone.
	Compare Fingerprint
	// Takes says what takes a key for good.
	Takes Takes
	// Repeat says what a repeat is answered with.
	Repeat Repeat
	// ReplayStatus is the status of a replay; 0 is the first answer's.
	ReplayStatus int
	// KeepHeaders are the response headers that are kept with the answer and
	// replayed, beside Content-Type. Never name Set-Cookie here.
	KeepHeaders []string
	Retention   Retention
	Running     Running
	Refusals    Refusals
}

// KeyRule says which keys are taken.
type KeyRule struct {
	// Required refuses a request without a key. If it is false, such a request
	// is done without any protection.
	Required bool
	// MinLength and MaxLength count Unicode code points; MaxLength 0 is
	// [DefaultMaxLength].
	MinLength, MaxLength int
	// VisibleASCII allows only the characters ! to ~. Otherwise any UTF-8 text
	// without control characters is a key.
	VisibleASCII bool
	// Without are characters that are not allowed.
	Without string
	// Quoted says that the header is a string as in RFC 9651: "k1", with the
	// quotes, which are not part of the key.
	Quoted bool
}

// DefaultMaxLength is the longest key, in code points, where a rule says
// nothing.
const DefaultMaxLength = 255

// Takes says what takes a key: until then it is free, and the request may be
// sent again with the same key and any body.
type Takes int

// What takes a key.
const (
	// OnSuccess: only an answer below 400. A refusal leaves nothing behind.
	OnSuccess Takes = iota
	// OnResource: that the work has made a resource, whatever the answer. The
	// work says so by naming it in [Answer.Resource], or by [Lease.Made].
	OnResource
	// OnAnswer: any answer, errors included, once the work has begun. Only a
	// panic or a crash leaves the key free.
	OnAnswer
)

// Repeat says what a repeat is answered with.
type Repeat int

// What a repeat is answered with.
const (
	// FirstAnswer is the first answer, byte for byte.
	FirstAnswer Repeat = iota
	// CurrentResource is the resource as it is now. No answer is stored; who
	// serves the repeat reads the resource that the record names.
	CurrentResource
)

// Retention says how long what is known. Every time is counted from the moment
// the key was taken and judged by the clock when a repeat is read; when the
// sweep runs changes nothing.
type Retention struct {
	// Answer is how long the first answer is kept; 0 is for ever.
	Answer time.Duration
	// Tombstone is what is kept for ever when the answer goes, and what a
	// repeat is then compared by; nil is what Compare says.
	Tombstone Fingerprint
	// Key is how long the key itself is remembered; 0 is for ever. Later the
	// same key is a new unit of work. It is at least Answer.
	Key time.Duration
}

// Running says what happens to a repeat that comes while the first request is
// being worked on.
type Running struct {
	// Lease is how long an owner that gives no sign of life keeps its claim.
	// 0 is [DefaultLease].
	Lease time.Duration
	// Wait is how long a repeat waits for the end; 0 is not at all.
	Wait time.Duration
	// RetryAfter is what a repeat is told that has waited in vain; 0 is
	// [DefaultRetryAfter].
	RetryAfter time.Duration
}

// The defaults of [Running].
const (
	DefaultLease      = 30 * time.Second
	DefaultRetryAfter = time.Second
)

// Refusals say how each problem is answered.
type Refusals struct {
	Missing, Malformed, Conflict, Running Refusal
}

// Refusal is what one problem is answered with.
type Refusal struct {
	Status  int
	Code    string
	Message string
}

// Header is the request header that carries a key, Replayed the response
// header that marks a replay.
const (
	Header   = "Idempotency-Key"
	Replayed = "Idempotency-Replayed"
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
