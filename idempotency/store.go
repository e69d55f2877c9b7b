package idempotency

import (
	"context"
	"time"
)

// Store keeps keys for the leased form. Times are judged by the store's clock:
// a database that several processes share uses its own. Methods return
// [ErrLeaseLost] where they say so; other errors mean that the store failed
// and, unless they say otherwise, that the outcome is unknown.
type Store interface {
	// Claim makes the caller the owner of a key that is free, forgotten or
	// abandoned, or judges the request by what the key names. An error means
	// that nothing was claimed.
	Claim(ctx context.Context, r Request, lease time.Duration) (Claim, error)
	// Renew prolongs an owner's claim to lease from now, or returns
	// ErrLeaseLost.
	Renew(ctx context.Context, ref Ref, o Owner, lease time.Duration) error
	// Made notes what the work has made, or returns ErrLeaseLost.
	Made(ctx context.Context, ref Ref, o Owner, made Resource) error
	// Complete takes the key for good and keeps the answer as the policy says,
	// or returns ErrLeaseLost. It may be repeated by the same owner.
	Complete(ctx context.Context, r Request, o Owner, a Answer) error
	// Release frees the key, or returns ErrLeaseLost. It may be repeated by the
	// same owner.
	Release(ctx context.Context, ref Ref, o Owner) error
	// Find returns what is known of a key, and false if it is free, forgotten
	// or was never used.
	Find(ctx context.Context, ref Ref) (Record, bool, error)
}

// Claim is what came of trying to claim a key.
type Claim struct {
	// Owner is set if the verdict is Fresh: the caller owns the key.
	Owner     Owner
	Judgement Judgement
	// Record is what the key names, for other verdicts. When a claim was taken
	// over it says what the owner before has made.
	Record Record
}
