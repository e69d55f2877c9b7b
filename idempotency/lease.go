package idempotency

import (
	"context"
	"sync"
)

// Lease is what a handler holds while it works on a key: see [LeaseFrom].
type Lease struct {
	store Store
	ref   Ref
	owner Owner

	mu   sync.Mutex
	made Resource
}

type leaseKey struct{}

// LeaseFrom returns the lease of the request that is being worked on, and
// whether there is one: a request without a key has none.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}

// Key returns the key that is being worked on.
func (l *Lease) Key() string { return l.ref.Key }

// Epoch numbers the owners of this key from 1. Above 1, an owner before has
// died or stalled at an unknown point: look at what it did before doing it
// again. Systems that can compare numbers should refuse writes of a lower
// epoch than they have seen lately: a key that was freed or forgotten, and
// swept, begins at 1 again.
func (l *Lease) Epoch() int64 { return l.owner.Epoch }

// Resource returns what this owner or one before has made, if it said so.
func (l *Lease) Resource() (Resource, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made, l.made != Resource{}
}

// Made notes, for good, what the work has made, so that an owner that takes
// over can go on from there. Under [OnResource] this is what takes the key.
// ErrLeaseLost: another owner has taken over; stop.
func (l *Lease) Made(ctx context.Context, made Resource) error {
	if err := l.store.Made(ctx, l.ref, l.owner, made); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = made
	return nil
}
