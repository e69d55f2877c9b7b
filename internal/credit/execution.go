package credit

import (
	"context"
	"errors"
	"fmt"
)

// Do runs an op of another service in a group, with what it keeps along. The
// error is what has failed, [ErrTaken], or why the op was refused; then nothing
// of it was written. A caller that leaves does not stop an op that waits, and
// must not look at its outcome.
func (s *Service) Do(ctx context.Context, op *Op) error {
	_, err := s.run(ctx, op)
	return err
}

// PlaceExecution sets aside what an execution may cost. The hold has the id of
// the execution, and only [SettleExecution] can end it. Faults:
// insufficient_credits, invalid_request.
func PlaceExecution(st *State, executionID string, amount Amount) (Effect, error) {
	if st.Hold != nil {
		return Effect{}, errors.New("an execution that is new has a hold")
	}
	h := &StoredHold{
		Hold: Hold{ID: executionID, Amount: amount}, Customer: st.Customer, CreditType: st.CreditType, Execution: executionID,
	}
	if err := st.Account.Place(&h.Hold, st.Now); err != nil {
		return Effect{}, refusal(err, st)
	}
	return Effect{Hold: h}, nil
}

// CanHold says why an amount could not be set aside now, and changes nothing.
// Faults: insufficient_credits, invalid_request.
func CanHold(st *State, amount Amount) error {
	if !st.Account.AllowNegative && st.Account.Available() < amount {
		return refusal(ErrInsufficient, st)
	}
	return nil
}

// Settled is what became of the hold of an execution.
type Settled struct {
	Effect

	// Charged is what was taken, Unbilled what was used beyond what was held.
	Charged, Unbilled Amount
}

// SettleParams says what an execution has used.
type SettleParams struct {
	ProjectID string
	// Used is 0 if nothing is to be charged.
	Used Amount
	// NewID makes the ids of movements.
	NewID func() (string, error)
}

// SettleExecution ends the hold of an execution that has ended: what was used
// is taken, never more than was held, and the rest let go. It is the only way
// in which such a hold ends.
func SettleExecution(st *State, p SettleParams) (Settled, error) {
	h := st.Hold
	if h == nil || h.Execution == "" {
		return Settled{}, errors.New("an execution that was priced has no hold")
	}
	if p.Used == 0 {
		expired, err := st.Account.Release(&h.Hold, st.Now)
		if err != nil {
			return Settled{}, fmt.Errorf("release the hold of an execution: %w", err)
		}
		movements, err := expiries(st, p.ProjectID, expired, p.NewID)
		return Settled{Effect: Effect{Hold: h, Movements: movements}}, err
	}
	movementID, err := p.NewID()
	if err != nil {
		return Settled{}, err
	}
	charged := min(p.Used, h.Amount)
	effect, expired, err := capture(st, &CloseParams{ProjectID: p.ProjectID, Amount: &charged}, movementID)
	if err != nil {
		return Settled{}, fmt.Errorf("capture the hold of an execution: %w", err)
	}
	more, err := expiries(st, p.ProjectID, expired, p.NewID)
	effect.Movements = append(effect.Movements, more...)
	return Settled{Effect: effect, Charged: charged, Unbilled: p.Used - charged}, err
}
