package credit

import (
	"errors"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// TestUndo: a topup that is undone takes from its own grant first, then from
// what would be used next, and never what is held.
func TestUndo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		held, amount  Amount
		err           error
		own, other    Amount // what is left of the two grants
		posted, basis Amount
	}{
		"whole":         {0, 50, nil, 0, 20, 120, 100},
		"part":          {0, 30, nil, 20, 20, 140, 100},
		"partly held":   {40, 50, nil, 40, 0, 120, 80},
		"wholly held":   {170, 50, ErrInsufficient, 50, 20, 170, 100},
		"nearly all is": {121, 50, ErrInsufficient, 50, 20, 170, 100},
	} {
		own := &Lot{Number: 1, Priority: 90, Remaining: 50, Granted: 50, Movement: "m"}
		other := &Lot{Number: 2, Priority: 10, Remaining: 20, Granted: 20, Movement: "o"}
		a := Account{Posted: 170, Held: c.held, Lots: []*Lot{own, other}}
		own.Pinned = min(c.held, own.Remaining)
		e, err := a.undo(&Movement{ID: "m", Entry: Entry{Kind: Topup, Delta: 50}}, c.amount, now)
		if !errors.Is(err, c.err) || own.Remaining != c.own || other.Remaining != c.other || a.Posted != c.posted || a.base().Remaining != c.basis {
			t.Errorf("%s: %v, own %d, other %d, posted %d, base %d", name, err, own.Remaining, other.Remaining, a.Posted, a.base().Remaining)
		}
		if err == nil && (e.Delta != -c.amount || e.Amount != c.amount || e.BalanceAfter != c.posted || e.Kind != Reversal) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestWhatCanBeReversed: by kind, amount and what was done before.
func TestWhatCanBeReversed(t *testing.T) {
	t.Parallel()
	undone := &Movement{ID: "u", Entry: Entry{Kind: Reversal, Amount: 5}, Reason: "r"}
	for name, c := range map[string]struct {
		kind   Kind
		delta  Amount
		undo   *Movement
		amount *Amount
		reason string
		code   api.Code // empty for success
		repeat bool
	}{
		"charge":                   {Charge, -10, nil, nil, "", "", false},
		"capture":                  {Capture, -10, nil, new(Amount(10)), "", "", false},
		"adjustment that took":     {Adjust, -10, nil, new(Amount(1)), "", "", false},
		"topup that is used":       {Topup, 10, nil, nil, "", api.CodeInsufficientCredits, false},
		"too much":                 {Charge, -10, nil, new(Amount(11)), "", api.CodeInvalidRequest, false},
		"reversal":                 {Reversal, 10, nil, nil, "", api.CodeConflict, false},
		"expiry":                   {Expiry, -10, nil, nil, "", api.CodeConflict, false},
		"capture of nothing":       {Capture, 0, nil, nil, "", api.CodeConflict, false},
		"repeat":                   {Charge, -10, undone, new(Amount(5)), "r", "", true},
		"repeat of another amount": {Charge, -10, undone, nil, "r", api.CodeConflict, false},
		"repeat for another cause": {Charge, -10, undone, new(Amount(5)), "", api.CodeConflict, false},
	} {
		st := &State{Account: &Account{}, Original: &Movement{ID: "m", Entry: Entry{Kind: c.kind, Delta: c.delta}}, Undo: c.undo}
		effect, err := reverse(st, &ReverseParams{Amount: c.amount, Reason: c.reason}, "new")
		if c.code != "" {
			if fault.CodeOf(err) != c.code || err == nil || st.Account.Posted != 0 {
				t.Errorf("%s: %v, posted %d", name, err, st.Account.Posted)
			}
			continue
		}
		if err != nil || effect.Repeat != c.repeat || (effect.Movements[0].ID == "u") != c.repeat {
			t.Errorf("%s: %v %+v", name, err, effect)
		}
	}
}
