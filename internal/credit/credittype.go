package credit

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Type is a kind of credits that a project keeps. It never changes.
type Type struct {
	// Number orders the types of a project by when they were made.
	Number int64
	Name   string
	// AllowNegative says that available may go below zero.
	AllowNegative bool
	CreatedAt     time.Time
}

// DeclareType makes a credit type and says whether it has; one that is there
// already and is equal is returned. Faults: conflict if it is not equal,
// invalid_request, unavailable.
func (c *Customers) DeclareType(ctx context.Context, projectID, name string, allowNegative bool) (Type, bool, error) {
	if err := validateCreditType(name); err != nil {
		return Type{}, false, err
	}
	if err := writable(c.params.Guard); err != nil {
		return Type{}, false, err
	}
	asked := Type{Name: name, AllowNegative: allowNegative, CreatedAt: c.params.Clock()}
	t, created, err := c.params.Store.EnsureType(ctx, projectID, asked)
	if err != nil {
		return Type{}, false, fmt.Errorf("declare a credit type: %w", err)
	}
	if t.AllowNegative != allowNegative {
		return Type{}, false, fault.New(api.CodeConflict, "this credit type is declared otherwise, and never changes").
			With("allow_negative", t.AllowNegative)
	}
	return t, created, nil
}

// ListTypes returns up to limit credit types, the oldest first, of those made
// after a number.
func (c *Customers) ListTypes(ctx context.Context, projectID string, after int64, limit int) ([]Type, error) {
	list, err := c.params.Store.ListTypes(ctx, projectID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list credit types: %w", err)
	}
	return list, nil
}
