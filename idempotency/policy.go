package idempotency

import (
	"errors"
	"net/http"
	"slices"
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
	// replayed, beside Content-Type and Content-Encoding. Set-Cookie cannot be
	// among them.
	KeepHeaders []string
	Retention   Retention
	Running     Running
	Refusals    Refusals
}

// Validate says what makes no sense in a policy. Ask it once, at the start.
func (p *Policy) Validate() error {
	var errs []error
	check := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New("idempotency: "+text))
		}
	}
	check(p.Namespace != "" && len(p.Namespace) <= 64, "the namespace must have 1 to 64 bytes")
	check(p.Compare != nil, "the policy must say what is compared")
	check(p.Retention.Key == 0 || p.Retention.Answer <= p.Retention.Key,
		"a key must be remembered as long as its answer")
	check(p.Key.longest() <= DefaultMaxLength, "stores keep no key of more than 255 characters")
	check(!slices.ContainsFunc(p.KeepHeaders, isCookie), "cookies are never kept")
	for _, one := range []Refusal{p.Refusals.Missing, p.Refusals.Malformed, p.Refusals.Conflict, p.Refusals.Running} {
		check(one.Status >= 400 && one.Status < 600, "every refusal needs a status")
	}
	return errors.Join(errs...)
}

func isCookie(name string) bool { return http.CanonicalHeaderKey(name) == "Set-Cookie" }

// KeyRule says which keys are taken.
type KeyRule struct {
	// Required refuses a request without a key. If it is false, such a request
	// is done without any protection.
	Required bool
	// MinLength and MaxLength count Unicode code points; MaxLength 0 is
	// [DefaultMaxLength], which is also the most that stores keep.
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

func (k *KeyRule) longest() int {
	if k.MaxLength == 0 {
		return DefaultMaxLength
	}
	return k.MaxLength
}

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
	// Answer is how long the first answer is kept; 0 is as long as the key.
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
