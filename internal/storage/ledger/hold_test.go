package ledger_test

import (
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// place is an op that sets an amount aside.
func (b *bench) place(customer, holdID string, amount credit.Amount, expires time.Time) *credit.Op {
	return &credit.Op{
		ProjectID: b.project, Subject: credit.Subject{Customer: customer, CreditType: "main", HoldID: holdID},
		Decide: func(st *credit.State) (credit.Effect, error) {
			if st.Hold != nil {
				return credit.Effect{Hold: st.Hold, Repeat: true}, nil
			}
			h := &credit.StoredHold{Hold: credit.Hold{ID: holdID, Amount: amount, ExpiresAt: expires}, Print: "print"}
			if err := st.Account.Place(&h.Hold, st.Now); err != nil {
				return credit.Effect{}, fault.Wrap(api.CodeInsufficientCredits, err, "refused")
			}
			return credit.Effect{Hold: h}, nil
		},
	}
}

// capture is an op that uses an amount of a hold; release one that uses none.
func (b *bench) capture(customer, holdID string, amount credit.Amount) *credit.Op {
	return b.end(customer, holdID, func(st *credit.State) (*credit.Entry, []credit.Entry, error) {
		e, expired, err := st.Account.Capture(&st.Hold.Hold, amount, st.Now)
		return &e, expired, err
	})
}

func (b *bench) release(customer, holdID string) *credit.Op {
	return b.end(customer, holdID, func(st *credit.State) (*credit.Entry, []credit.Entry, error) {
		expired, err := st.Account.Release(&st.Hold.Hold, st.Now)
		return nil, expired, err
	})
}

func (b *bench) end(customer, holdID string, do func(*credit.State) (*credit.Entry, []credit.Entry, error)) *credit.Op {
	return &credit.Op{
		ProjectID: b.project, Subject: credit.Subject{Customer: customer, HoldID: holdID},
		Decide: func(st *credit.State) (credit.Effect, error) {
			if st.Hold == nil {
				return credit.Effect{}, fault.New(api.CodeNotFound, "there is no such hold")
			}
			entry, expired, err := do(st)
			if err != nil {
				return credit.Effect{}, fault.Wrap(api.CodeConflict, err, "refused")
			}
			effect := credit.Effect{Hold: st.Hold}
			if entry != nil {
				m := b.movement(st, *entry)
				m.Of = holdID
				effect.Movements = append(effect.Movements, m)
			}
			for _, e := range expired {
				effect.Movements = append(effect.Movements, b.movement(st, e))
			}
			return effect, nil
		},
	}
}

func (b *bench) movement(st *credit.State, e credit.Entry) credit.Movement {
	return credit.Movement{ID: newID(), ProjectID: b.project, Customer: st.Customer, CreditType: st.CreditType, Entry: e}
}

// K7: a grant expires under a hold. What is held stays until the hold is
// settled, and then what was not used expires; nothing goes below zero.
func TestGrantExpiresUnderHold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		now := time.Now()
		b.now = func() time.Time { return now }
		b.must(t, b.op(t, order{kind: credit.Topup, key: "base", customer: "ada", amount: 5}))
		b.must(t, b.op(t, order{
			kind: credit.Topup, key: "grant", customer: "ada", amount: 10, grant: credit.Grant{Priority: 1, ExpiresAt: now.Add(time.Hour)},
		}))
		b.must(t, b.place("ada", "h", 7, time.Time{}), b.place("ada", "i", 1, now.Add(90*time.Minute)))
		b.want(t, "ada", "main", "0.000015/0.000008")
		now = now.Add(time.Hour)
		late := b.op(t, order{kind: credit.Charge, key: "late", customer: "ada", amount: 6})
		b.must(t, late)
		if fault.CodeOf(late.Outcome.Err) != api.CodeInsufficientCredits {
			t.Errorf("credits that have expired were spent: %v", late.Outcome.Err)
		}
		b.want(t, "ada", "main", "0.000013/0.000008") // 2 of the grant were not held
		now = now.Add(time.Hour)
		b.must(t, b.capture("ada", "h", 3))
		b.want(t, "ada", "main", "0.000005/0") // the hold of 1 has ended; 3 are used, 5 have expired
		again := b.release("ada", "i")
		b.must(t, again)
		if fault.CodeOf(again.Outcome.Err) != api.CodeConflict {
			t.Errorf("an expired hold was released: %v", again.Outcome.Err)
		}
		if n := b.count(t, "movements WHERE kind = 'expiry'"); n != 3 {
			t.Errorf("%d entries of what has expired", n)
		}
	})
}

// A hold is placed, used and asked for in one group.
func TestHoldWithinAGroup(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		grant := order{kind: credit.Topup, key: "t", customer: "ada", amount: 10, grant: credit.Grant{Priority: 1}}
		b.must(t, b.op(t, grant), b.op(t, order{kind: credit.Topup, key: "u", customer: "ada", amount: 1}))
		first, second := b.place("ada", "h", 4, time.Time{}), b.place("ada", "h", 4, time.Time{})
		b.must(t, first, second, b.op(t, order{kind: credit.Charge, key: "c", customer: "ada", amount: 7}))
		if !first.Outcome.Created || second.Outcome.Created || second.Outcome.Hold.Amount != 4 {
			t.Errorf("%+v %+v", first.Outcome, second.Outcome)
		}
		b.want(t, "ada", "main", "0.000004/0.000004")
		early := b.release("bob", "h")
		b.must(t, early, b.capture("ada", "h", 4), b.release("ada", "h"))
		if fault.CodeOf(early.Outcome.Err) != api.CodeCustomerNotFound {
			t.Error(early.Outcome.Err)
		}
		b.want(t, "ada", "main", "0/0")
	})
}
