package credit

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// ReverseParams is a request to undo a movement.
type ReverseParams struct {
	ProjectID  string
	MovementID string
	// Amount is how much of it is undone, more than zero; nil is all of it.
	Amount *Amount
	Reason string
}

// Reversed is a reversal and what there is now.
type Reversed struct {
	Movement Movement
	Balance  Balance
	// Created says that this request has made it.
	Created bool
}

// Reverse undoes a movement, in part or whole, once; a repeat with the same
// content returns the reversal. A topup, a charge, an adjustment or a capture
// can be undone. Faults: conflict if it was reversed with other content or is
// of another kind; insufficient_credits if it takes credits that are not
// available; invalid_request if more is undone than was moved; not_found;
// unavailable.
func (s *Service) Reverse(ctx context.Context, p ReverseParams) (Reversed, error) {
	if !id.Valid(p.MovementID) {
		return Reversed{}, noMovement()
	}
	if p.Amount != nil && *p.Amount <= 0 {
		return Reversed{}, invalid("amount", "amount must be more than zero")
	}
	if err := validateNote(p.Reason, nil); err != nil {
		return Reversed{}, err
	}
	if err := s.writable(); err != nil {
		return Reversed{}, err
	}
	reversalID, err := s.env().newID()
	if err != nil {
		return Reversed{}, err
	}
	outcome, err := s.run(ctx, &Op{
		ProjectID: p.ProjectID, Subject: Subject{MovementID: p.MovementID},
		Decide: func(st *State) (Effect, error) { return reverse(st, &p, reversalID) },
	})
	if err != nil {
		return Reversed{}, fmt.Errorf("reverse a movement: %w", err)
	}
	return Reversed{Movement: *outcome.Movement, Balance: outcome.Balance, Created: outcome.Created}, nil
}

// reverse decides about a movement that is to be undone.
func reverse(st *State, p *ReverseParams, reversalID string) (Effect, error) {
	m := st.Original
	moved := max(m.Delta, -m.Delta)
	amount := moved
	if p.Amount != nil {
		amount = *p.Amount
	}
	switch {
	case m.Kind == Reversal || m.Kind == Expiry || moved == 0:
		return Effect{}, fault.New(api.CodeConflict, "a movement of this kind cannot be reversed").With("kind", m.Kind)
	case st.Undo != nil && (st.Undo.Amount != amount || st.Undo.Reason != p.Reason):
		return Effect{}, fault.New(api.CodeConflict, "the movement was reversed with another amount or reason").
			With("reversal", st.Undo.ID).With("amount", st.Undo.Amount.String())
	case st.Undo != nil:
		return Effect{Movements: []Movement{*st.Undo}, Repeat: true}, nil
	case amount > moved:
		return Effect{}, invalid("amount", "amount is more than what was moved").With("moved", moved.String())
	}
	entry, err := st.Account.undo(m, amount, st.Now)
	if err != nil {
		return Effect{}, refusal(err, st)
	}
	return Effect{Movements: []Movement{{
		ID: reversalID, ProjectID: p.ProjectID, Customer: st.Customer, CreditType: st.CreditType, Entry: entry,
		Reason: p.Reason, Of: m.ID,
	}}}, nil
}

// undo takes back what a movement gave, first what is left and not held of its
// own grant, or gives to the base what it took. ErrInsufficient, ErrRange.
func (a *Account) undo(m *Movement, amount Amount, now time.Time) (Entry, error) {
	if m.Delta < 0 {
		return a.Add(Reversal, amount, amount, now)
	}
	if !a.AllowNegative && a.Available() < amount {
		return Entry{}, ErrInsufficient
	}
	if !(a.Available() - amount).inRange() {
		return Entry{}, ErrRange
	}
	own := a.takeOwn(m.ID, amount)
	a.Posted -= own
	for _, part := range a.take(amount - own) {
		part.Lot.Remaining -= part.Amount
	}
	a.Posted += own
	return a.post(Reversal, amount, -amount, now), nil
}

// takeOwn takes what it can of an amount from the grant that a topup has made.
func (a *Account) takeOwn(topup string, amount Amount) Amount {
	for _, l := range a.Lots {
		if l.Movement == topup {
			own := min(amount, l.free())
			l.Remaining -= own
			return own
		}
	}
	return 0
}
