package idempotency

import "time"

// Request is what the key layer knows of a request: raw bytes and no more.
type Request struct {
	Policy *Policy
	// Scope is whose key it is: a project, a tenant, an API key. It must name
	// the principal, or one caller could read another's answers. At most 200
	// bytes.
	Scope string
	// Key is what [Policy.ParseKey] returned.
	Key string
	// Facts are what the request says outside of its body: the method, the
	// path's parameters. They are compared exactly.
	Facts []Fact
	// Body is the body as sent, with transfer and content codings undone.
	Body []byte
}

// Fact is one named part of a request.
type Fact struct{ Name, Value string }

// Ref names a key in a store.
type Ref struct{ Scope, Namespace, Key string }

// Ref returns the request's key as stores know it.
func (r *Request) Ref() Ref { return Ref{r.Scope, r.Policy.Namespace, r.Key} }

// Resource is what a unit of work made.
type Resource struct{ Kind, ID string }

// Answer is what was said to the first request.
type Answer struct {
	Status      int
	ContentType string
	// Header holds what the policy keeps beside the content type.
	Header map[string]string
	Body   []byte
	// Resource is what the work made; zero if it made nothing with an id.
	Resource Resource
}

// State says how far a unit of work is.
type State string

// The states.
//
//	(none) ──claim──▶ claimed ──complete──▶ done
//	                   │  ▲ ▲
//	           release ▼  │ └── takeover of an abandoned claim: epoch + 1
//	                   free     claim of a free key: epoch + 1
//
// In the atomic form nobody ever sees claimed or free: the claim commits
// together with its end, and what is refused is rolled back.
const (
	Claimed State = "claimed"
	Done    State = "done"
	// Free keys mean nothing any more; only their epoch is remembered, for an
	// hour or so, so that epochs grow while anybody may still be late.
	Free State = "free"
)

// Owner is who works on a claim. The epoch grows with every owner; together
// with the token it fences off those that came before.
type Owner struct {
	Token [16]byte
	Epoch int64
	// ExpiresAt is when the claim counts as abandoned unless it is renewed.
	ExpiresAt time.Time
}

// Record is what a store knows of a key.
type Record struct {
	Ref

	State State
	// Owner is who works, or worked last, on the key. It expires only while
	// State is Claimed.
	Owner Owner
	// Print and Tombstone are the fingerprints of the request that took the
	// key. Tombstone is empty if the policy has none.
	Print, Tombstone Print
	// Answer is nil if none is kept.
	Answer *Answer
	// Resource is what the work made.
	Resource Resource
	// CreatedAt is when the key was first seen.
	CreatedAt time.Time
	// AnswerExpiresAt and KeyExpiresAt are zero for "never".
	AnswerExpiresAt, KeyExpiresAt time.Time
	// Repeats and Conflicts count what came later with this key. They may lag.
	Repeats, Conflicts int64
}

// Result is what became of a request.
type Result struct {
	// Replayed says that this is a repeat and the work was done before.
	Replayed bool
	// Answer is what to say; nil when the repeat is to be answered with the
	// resource as it is now.
	Answer *Answer
	// AnswerExpired says that the first answer is not kept any more.
	AnswerExpired bool
	// Record is what the key names. For a request that was not replayed it is
	// zero but for its Ref and Resource.
	Record Record
}
