package credit

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// BookStore reads what is kept.
type BookStore interface {
	// FindCustomer returns a customer and whether there is one.
	FindCustomer(ctx context.Context, projectID, customer string) (Customer, bool, error)
	// FindMovement returns a project's movement and whether there is one.
	FindMovement(ctx context.Context, projectID, movementID string) (Movement, bool, error)
	// FindReversal returns what has reversed a movement, and whether it was.
	FindReversal(ctx context.Context, movementID string) (Movement, bool, error)
	// ListMovements returns up to q.Limit movements.
	ListMovements(ctx context.Context, q MovementQuery) ([]Movement, error)
	// LastMovement returns the highest number of a movement of a project, 0 if
	// there is none.
	LastMovement(ctx context.Context, projectID string) (int64, error)
	// FindHold returns a hold and whether there is one.
	FindHold(ctx context.Context, projectID, customer, holdID string) (StoredHold, bool, error)
	// ListHolds returns up to q.Limit holds of a customer, the latest first.
	ListHolds(ctx context.Context, q HoldQuery) ([]StoredHold, error)
	// ListGrants returns up to limit grants of a customer that have something
	// left, the oldest first, of those made after a number.
	ListGrants(ctx context.Context, customer, after int64, limit int) ([]StoredGrant, error)
	// BalancesAt returns a customer's balances by credit type as they were.
	BalancesAt(ctx context.Context, customer int64, at time.Time) (map[string]Balance, error)
}

// MovementQuery says which movements are asked for. What is zero asks for all.
type MovementQuery struct {
	ProjectID  string
	Customer   string
	CreditType string
	Kind       Kind
	// From and To are about when they were made, half open.
	From, To time.Time
	// Before is a number: movements before it, the latest first.
	Before int64
	// UpTo is a number: movements after After and up to it, the oldest first.
	After, UpTo int64
	Limit       int
}

// HoldQuery says which holds are asked for.
type HoldQuery struct {
	// Customer is a customer's number.
	Customer int64
	// State is empty for all.
	State HoldState
	// Before is a number: holds placed before it; 0 is all of them.
	Before int64
	Limit  int
}

// StoredGrant is what is left of a grant and what it is of.
type StoredGrant struct {
	Lot

	CreditType string
}

// Books reads the ledger. What time has done may be missing from what it says
// for as long as [Service.Sweep] takes to come round.
type Books struct{ store BookStore }

// NewBooks returns a Books.
func NewBooks(store BookStore) *Books { return &Books{store} }

// Movement returns a movement and what has reversed it, nil if nothing has.
// Fault: not_found.
func (b *Books) Movement(ctx context.Context, projectID, movementID string) (m Movement, reversal *Movement, err error) {
	if !id.Valid(movementID) {
		return Movement{}, nil, noMovement()
	}
	m, found, err := b.store.FindMovement(ctx, projectID, movementID)
	if err != nil {
		return Movement{}, nil, fmt.Errorf("find a movement: %w", err)
	}
	if !found {
		return Movement{}, nil, noMovement()
	}
	undo, found, err := b.store.FindReversal(ctx, movementID)
	if err != nil {
		return Movement{}, nil, fmt.Errorf("find a reversal: %w", err)
	}
	if found {
		reversal = &undo
	}
	return m, reversal, nil
}

func noMovement() error { return fault.New(api.CodeNotFound, "there is no such movement") }

// The states of movements that a key may name.
const (
	StatusSucceeded = "succeeded"
	StatusReversed  = "reversed"
)

// Status returns the state that a movement is in.
func (b *Books) Status(ctx context.Context, projectID, movementID string) (string, error) {
	_, reversal, err := b.Movement(ctx, projectID, movementID)
	if err != nil {
		return "", err
	}
	if reversal != nil {
		return StatusReversed, nil
	}
	return StatusSucceeded, nil
}

// Movements returns up to q.Limit movements, the latest first. Fault:
// validation_failed.
func (b *Books) Movements(ctx context.Context, q MovementQuery) ([]Movement, error) {
	if err := q.validate(); err != nil {
		return nil, err
	}
	list, err := b.store.ListMovements(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list movements: %w", err)
	}
	return list, nil
}

func (q *MovementQuery) validate() error {
	switch q.Kind {
	case "", Topup, Charge, Adjust, Capture, Reversal, Expiry:
	default:
		return fault.Field("kind", "kind is topup, charge, adjust, capture, reversal or expiry")
	}
	if q.Customer != "" && ValidateCustomer(q.Customer) != nil {
		return fault.Field("customer", "customer must be a customer's id")
	}
	if q.CreditType != "" && validateCreditType(q.CreditType) != nil {
		return fault.Field("credit_type", "credit_type must be the name of a credit type")
	}
	return nil
}

// exportPage is how many movements are read at a time.
const exportPage = 1000

// Export returns a function that returns the movements that q asks for, the
// oldest first, page by page, and none at the end. What is written after Export
// was called is not among them: of each balance it is an unbroken beginning. No
// transaction is held between two pages. Fault: validation_failed.
func (b *Books) Export(ctx context.Context, q MovementQuery) (next func(context.Context) ([]Movement, error), err error) {
	if err := q.validate(); err != nil {
		return nil, err
	}
	if q.UpTo, err = b.store.LastMovement(ctx, q.ProjectID); err != nil {
		return nil, fmt.Errorf("export movements: %w", err)
	}
	q.Limit = exportPage
	return func(ctx context.Context) ([]Movement, error) {
		if q.After >= q.UpTo {
			return nil, nil
		}
		page, err := b.store.ListMovements(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("export movements: %w", err)
		}
		q.After = q.UpTo
		if len(page) == q.Limit {
			q.After = page[len(page)-1].Number
		}
		return page, nil
	}, nil
}

// customer returns a customer's number. Fault: customer_not_found.
func (b *Books) customer(ctx context.Context, projectID, customer string) (int64, error) {
	if ValidateCustomer(customer) != nil {
		return 0, noCustomer()
	}
	c, found, err := b.store.FindCustomer(ctx, projectID, customer)
	if err != nil {
		return 0, fmt.Errorf("find a customer: %w", err)
	}
	if !found {
		return 0, noCustomer()
	}
	return c.Number, nil
}

// BalancesAt returns a customer's balances as they were when everything dated
// up to a time had happened, and nothing later. Fault: customer_not_found.
func (b *Books) BalancesAt(ctx context.Context, projectID, customer string, at time.Time) (map[string]Balance, error) {
	number, err := b.customer(ctx, projectID, customer)
	if err != nil {
		return nil, err
	}
	balances, err := b.store.BalancesAt(ctx, number, at)
	if err != nil {
		return nil, fmt.Errorf("read past balances: %w", err)
	}
	return balances, nil
}

// Grants returns up to limit grants of a customer that have something left, the
// oldest first, of those made after a number. Fault: customer_not_found.
func (b *Books) Grants(ctx context.Context, p ListParams) ([]StoredGrant, error) {
	number, err := b.customer(ctx, p.ProjectID, p.Customer)
	if err != nil {
		return nil, err
	}
	list, err := b.store.ListGrants(ctx, number, p.Cursor, p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	return list, nil
}

// ListParams asks for a part of what a customer has.
type ListParams struct {
	ProjectID string
	Customer  string
	// Cursor is the number of the last one of the page before; 0 for none.
	Cursor int64
	Limit  int
}

// Hold returns a hold. Fault: not_found.
func (b *Books) Hold(ctx context.Context, projectID, customer, holdID string) (StoredHold, error) {
	if ValidateCustomer(customer) != nil || validateHoldID(holdID) != nil {
		return StoredHold{}, noHold()
	}
	h, found, err := b.store.FindHold(ctx, projectID, customer, holdID)
	if err != nil {
		return StoredHold{}, fmt.Errorf("find a hold: %w", err)
	}
	if !found {
		return StoredHold{}, noHold()
	}
	return h, nil
}

func noHold() error { return fault.New(api.CodeNotFound, "there is no such hold") }

// Holds returns up to p.Limit holds of a customer in a state, the latest first;
// an empty state is all of them. Faults: customer_not_found, validation_failed.
func (b *Books) Holds(ctx context.Context, p ListParams, state HoldState) ([]StoredHold, error) {
	switch state {
	case "", HoldOpen, HoldCaptured, HoldReleased, HoldExpired:
	default:
		return nil, fault.Field("state", "state is open, captured, released or expired")
	}
	number, err := b.customer(ctx, p.ProjectID, p.Customer)
	if err != nil {
		return nil, err
	}
	list, err := b.store.ListHolds(ctx, HoldQuery{Customer: number, State: state, Before: p.Cursor, Limit: p.Limit})
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	return list, nil
}
