// Package work owns what the keys of keyed work name: executions and movements
// of credits, which share one namespace of keys in each project. It looks keys
// up and never claims one: whoever does the work claims its key.
//
// Invariant: a key names one unit of work, whatever method it was used with.
package work

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Keys finds keys.
type Keys interface {
	// Find returns what is known of a key and whether it was used.
	Find(ctx context.Context, ref idempotency.Ref) (idempotency.Record, bool, error)
}

// Status returns the state that a unit of work is in.
type Status func(ctx context.Context, projectID, unitID string) (string, error)

// Params configures a [Service].
type Params struct {
	Keys Keys
	// Kinds has the Status of each kind of unit.
	Kinds map[string]Status
}

// Service looks up keys of keyed work.
type Service struct{ params Params }

// NewService returns a Service.
func NewService(p Params) *Service { return &Service{params: p} }

// policy has the rules that all keyed work shares.
var policy = idempotency.Execution()

// Unit is a unit of work that a key names.
type Unit struct {
	Record idempotency.Record
	// Status is the state the unit is in now.
	Status string
}

// Find returns the unit that a project's key names. Faults: validation_failed
// when there is no key, not_found when it was never used, which is so for
// every text that cannot be a key.
func (s *Service) Find(ctx context.Context, projectID, key string) (Unit, error) {
	if key == "" {
		return Unit{}, fault.Field("key", "key is required: the Idempotency-Key to look up")
	}
	unused := fault.New(api.CodeNotFound, "this Idempotency-Key has never been used")
	if !policy.Key.Allows(key) {
		return Unit{}, unused
	}
	record, found, err := s.params.Keys.Find(ctx, idempotency.Ref{Scope: projectID, Namespace: policy.Namespace, Key: key})
	if err != nil {
		return Unit{}, fmt.Errorf("find a key: %w", err)
	}
	if !found {
		return Unit{}, unused
	}
	status, ok := s.params.Kinds[record.Resource.Kind]
	if !ok {
		return Unit{}, fmt.Errorf("a key names a unit of the unknown kind %q", record.Resource.Kind)
	}
	u := Unit{Record: record}
	if u.Status, err = status(ctx, projectID, record.Resource.ID); err != nil {
		return Unit{}, fmt.Errorf("find the unit of a key: %w", err)
	}
	return u, nil
}
