package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
)

// What a store remembers of balances is only what was committed: a group that
// was undone leaves nothing, and balances of one name in two credit types, or
// of two customers, are never taken for one another.
func TestPlacesAreRemembered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		store := ledger.New(b.db)
		n := 0
		run := func(orders ...order) []*credit.Op {
			g := credit.Group{Now: b.now().UTC().Truncate(time.Microsecond), NewID: func() (string, error) { return newID(), nil }}
			for _, o := range orders {
				n++
				o.key = fmt.Sprint("k", n)
				g.Ops = append(g.Ops, b.op(t, o))
			}
			broken := errors.New("broken")
			if orders[len(orders)-1].amount == 0 {
				g.Ops[len(g.Ops)-1].Decide = func(*credit.State) (credit.Effect, error) { return credit.Effect{}, broken }
				if err := store.Apply(t.Context(), g); !errors.Is(err, broken) {
					t.Fatal(err)
				}
				return nil
			}
			if err := store.Apply(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			return g.Ops
		}
		ada := order{kind: credit.Topup, customer: "ada", amount: 10_000_000}
		other, eve, undone := ada, ada, ada
		other.typ, eve.customer, undone.amount = "other", "eve", 0
		run(ada, other, eve, undone)
		if b.count(t, "customers") != 0 {
			t.Fatal("the group was not undone")
		}
		run(eve, other, ada)
		for range 3 {
			run(ada, eve, other, ada)
		}
		charge := order{kind: credit.Charge, customer: "ada", typ: "other", amount: 41_000_000}
		if err := run(charge)[0].Outcome.Err; err == nil {
			t.Error("a balance was taken for another")
		}
		b.want(t, "ada", "main", "70/0")
		b.want(t, "ada", "other", "40/0")
		b.want(t, "eve", "main", "40/0")
	})
}
