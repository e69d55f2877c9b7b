package ledger_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
)

// onBoth runs a test on a store of each engine.
func onBoth(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, open)
			test(t, b)
			b.audit(t)
		})
	}
}

// audit sees that the ledger agrees with itself.
func (b *bench) audit(t testing.TB) credit.Audit {
	t.Helper()
	a, err := ledger.New(b.db).Audit(context.WithoutCancel(t.Context()), ledger.AuditParams{})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Differences) > 0 {
		t.Errorf("the ledger differs from itself:\n%s", strings.Join(a.Differences, "\n"))
	}
	return a
}

// count counts rows.
func (b *bench) count(t testing.TB, from string, args ...any) int {
	t.Helper()
	var n int
	if err := b.db.Reader().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+from, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// want compares a balance with what it should be: posted/held.
func (b *bench) want(t testing.TB, customer, creditType, want string) {
	t.Helper()
	balance, found, err := ledger.New(b.db).FindBalance(t.Context(), b.project, customer, creditType)
	if got := fmt.Sprintf("%s/%s", balance.Posted, balance.Held); err != nil || !found || got != want {
		t.Errorf("%s has %s of %s, %v; want %s", customer, got, creditType, err, want)
	}
}

// policy keeps answers for an hour.
var policy = idempotency.CreditMovement(time.Hour)

func newID() string {
	made, err := id.New(time.Now(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return made
}

// order is one movement that is asked for.
type order struct {
	kind               credit.Kind
	key, customer, typ string
	amount             credit.Amount // micro-units
	grant              credit.Grant
}

// op is what the service makes of an order.
func (b *bench) op(t testing.TB, o order) *credit.Op {
	t.Helper()
	if o.typ == "" {
		o.typ = "main"
	}
	movementID := newID()
	op := &credit.Op{
		ProjectID: b.project,
		Key: &idempotency.Request{
			Policy: &policy, Scope: b.project, Key: o.key,
			Body:  fmt.Appendf(nil, `{"credit_type":%q,"amount":%q}`, o.typ, o.amount),
			Facts: []idempotency.Fact{{Name: "method", Value: string(o.kind)}, {Name: "customer", Value: o.customer}},
		},
		Subject: credit.Subject{
			Customer: o.customer, CreditType: o.typ,
			CreateCustomer: o.kind == credit.Topup, CreateAccount: o.kind == credit.Topup || o.kind == credit.Adjust && o.amount > 0,
		},
		Answer: func(out *credit.Outcome) (idempotency.Answer, error) {
			return idempotency.Answer{
				Status: 200, ContentType: "application/json", Body: []byte(out.Movement.ID + " " + out.Balance.Posted.String()),
				Resource: idempotency.Resource{Kind: string(o.kind), ID: movementID},
			}, nil
		},
	}
	if _, err := rand.Read(op.Token[:]); err != nil {
		t.Fatal(err)
	}
	op.Decide = func(st *credit.State) (credit.Effect, error) {
		entry, err := o.decide(st, movementID)
		if err != nil {
			return credit.Effect{}, fault.Wrap(api.CodeInsufficientCredits, err, "refused")
		}
		return credit.Effect{Movements: []credit.Movement{{
			ID: movementID, ProjectID: b.project, Customer: st.Customer, CreditType: st.CreditType, Entry: entry, Key: o.key, Grant: o.grant,
		}}}, nil
	}
	return op
}

func (o *order) decide(st *credit.State, movementID string) (credit.Entry, error) {
	switch {
	case o.kind == credit.Topup:
		g := o.grant
		if g.Movement = movementID; g == (credit.Grant{Movement: movementID}) {
			g.Priority = credit.DefaultPriority
		}
		return st.Account.Topup(o.amount, g, st.Now)
	case o.kind == credit.Charge:
		return st.Account.Spend(credit.Charge, o.amount, o.amount, st.Now)
	case o.amount < 0:
		return st.Account.Spend(credit.Adjust, -o.amount, o.amount, st.Now)
	default:
		return st.Account.Add(credit.Adjust, o.amount, o.amount, st.Now)
	}
}

// apply runs a group and returns the outcomes' errors.
func (b *bench) apply(t testing.TB, ops ...*credit.Op) error {
	t.Helper()
	return ledger.New(b.db).Apply(context.WithoutCancel(t.Context()), credit.Group{
		Ops: ops, Now: b.now().UTC().Truncate(time.Microsecond), NewID: func() (string, error) { return newID(), nil },
	})
}

func (b *bench) must(t testing.TB, ops ...*credit.Op) {
	t.Helper()
	if err := b.apply(t, ops...); err != nil {
		t.Fatal(err)
	}
}

// A group of all kinds on one hot balance: each op sees what those before it
// have done, and has its own verdict.
func TestGroupOnOneBalance(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		orders := []order{
			{kind: credit.Charge, key: "a", amount: 1}, // nobody is there before the topup is written
			{kind: credit.Topup, key: "b", amount: 10},
			{kind: credit.Charge, key: "c", amount: 4},
			{kind: credit.Charge, key: "d", amount: 7},
			{kind: credit.Adjust, key: "e", amount: -6},
			{kind: credit.Charge, key: "f", amount: 1},
			{kind: credit.Adjust, key: "g", amount: 3},
			{kind: credit.Charge, key: "h", amount: 3},
			{kind: credit.Charge, key: "i", amount: 5, typ: "other"},
		}
		var ops []*credit.Op
		for _, o := range orders {
			o.customer = "ada"
			ops = append(ops, b.op(t, o))
		}
		b.must(t, ops...)
		for i, want := range []string{"refused", "10", "6", "refused", "0", "refused", "3", "0", "refused"} {
			o := &ops[i].Outcome
			if refused := want == "refused"; refused != (fault.CodeOf(o.Err) == api.CodeInsufficientCredits) ||
				!refused && o.Balance.Posted.String() != micros(want) {
				t.Errorf("op %d: %v, %s; want %s", i, o.Err, o.Balance.Posted, want)
			}
		}
		b.want(t, "ada", "main", "0/0")
		for from, want := range map[string]int{"movements": 5, "idempotency_keys": 5, "credit_types": 1, "balances": 1, "customers": 1} {
			if n := b.count(t, from); n != want {
				t.Errorf("%d %s, want %d", n, from, want)
			}
		}
	})
}

// micros writes a number of micro-units as an amount.
func micros(n string) string {
	value, ok := new(big.Int).SetString(n, 10)
	if !ok {
		panic(n)
	}
	return credit.Amount(value.Int64()).String()
}

// A group over many balances: what is refused leaves no row at all.
func TestGroupOnManyBalances(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		var ops []*credit.Op
		for i := range 20 {
			ops = append(ops,
				b.op(t, order{kind: credit.Topup, key: fmt.Sprint("t", i), customer: fmt.Sprint("c", i%7), typ: fmt.Sprint("type", i%3), amount: 100}),
				b.op(t, order{kind: credit.Charge, key: fmt.Sprint("n", i), customer: fmt.Sprint("nobody", i), amount: 1}),
				b.op(t, order{kind: credit.Adjust, key: fmt.Sprint("m", i), customer: fmt.Sprint("nobody", i), amount: 1}))
		}
		b.must(t, ops...)
		for i, op := range ops {
			if err := op.Outcome.Err; i%3 == 0 && err != nil || i%3 != 0 && fault.CodeOf(err) != api.CodeCustomerNotFound {
				t.Errorf("op %d: %v", i, err)
			}
		}
		for from, want := range map[string]int{"movements": 20, "idempotency_keys": 20, "customers": 7, "credit_types": 3, "balances": 20} {
			if n := b.count(t, from); n != want {
				t.Errorf("%d %s, want %d", n, from, want)
			}
		}
	})
}

// K1: equal requests in one transaction would be two effects of one key. A
// group like that is refused whole.
func TestOneKeyTwiceInAGroup(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.must(t, b.op(t, order{kind: credit.Topup, key: "t", customer: "ada", amount: 100}))
		o := order{kind: credit.Charge, key: "k", customer: "ada", amount: 20}
		if err := b.apply(t, b.op(t, o), b.op(t, o)); err == nil {
			t.Error("a group had one key twice")
		}
		b.want(t, "ada", "main", "0.0001/0")
		if n := b.count(t, "idempotency_keys WHERE idempotency_key = 'k'"); n != 0 {
			t.Errorf("%d rows of the key", n)
		}
	})
}

// Keys in all states within one group: new, done with the same request, done
// with another, free, abandoned, refused.
func TestKeysOfAGroup(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		keys := b.db.Keys()
		charge := func(key string, amount credit.Amount) *credit.Op {
			return b.op(t, order{kind: credit.Charge, key: key, customer: "ada", amount: amount})
		}
		done := charge("done", 1)
		b.must(t, b.op(t, order{kind: credit.Topup, key: "t", customer: "ada", amount: 10}))
		b.must(t, done)
		for _, key := range []string{"free", "abandoned", "held", "refused"} {
			claim, err := keys.Claim(t.Context(), *charge(key, 1).Key, map[bool]time.Duration{true: time.Hour, false: time.Nanosecond}[key == "held"])
			if err != nil {
				t.Fatal(err)
			}
			if key == "free" {
				if err := keys.Release(t.Context(), charge(key, 1).Key.Ref(), claim.Owner); err != nil {
					t.Fatal(err)
				}
			}
		}
		ops := []*credit.Op{
			charge("new", 1), charge("done", 1), charge("held", 1), charge("free", 2), charge("abandoned", 1), charge("refused", 1),
			b.op(t, order{kind: credit.Adjust, key: "t", customer: "ada", amount: 10}),
		}
		ops[5].Decide = func(*credit.State) (credit.Effect, error) {
			return credit.Effect{}, fault.New(api.CodeInsufficientCredits, "refused")
		}
		b.must(t, ops...)
		for i, want := range []error{nil, nil, running, nil, nil, fault.New(api.CodeInsufficientCredits, ""), mismatch} {
			if err := ops[i].Outcome.Err; !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", ops[i].Key.Key, err, want)
			}
		}
		if first, again := done.Outcome.Key, ops[1].Outcome.Key; !again.Replayed || string(again.Answer.Body) != string(first.Answer.Body) {
			t.Errorf("the replay is %+v", again)
		}
		b.want(t, "ada", "main", "0.000005/0")
		if n := b.count(t, "idempotency_keys WHERE state = 'done'"); n != 5 {
			t.Errorf("%d keys are done", n)
		}
		if n := b.count(t, "idempotency_keys WHERE idempotency_key = 'refused'"); n != 0 {
			t.Error("the key of a refusal has a row")
		}
	})
}

var (
	mismatch = &idempotency.Error{Problem: idempotency.Mismatch}
	running  = &idempotency.Error{Problem: idempotency.StillRunning}
)

// An error that is no refusal undoes the whole group.
func TestGroupIsUndone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		broken := errors.New("broken")
		bad := b.op(t, order{kind: credit.Topup, key: "bad", customer: "eve", amount: 1})
		bad.Decide = func(st *credit.State) (credit.Effect, error) {
			st.Account.Posted += 5
			return credit.Effect{}, broken
		}
		if err := b.apply(t, b.op(t, order{kind: credit.Topup, key: "good", customer: "ada", amount: 1}), bad); !errors.Is(err, broken) {
			t.Error(err)
		}
		for _, from := range []string{"movements", "idempotency_keys", "customers", "balances"} {
			if n := b.count(t, from); n != 0 {
				t.Errorf("%d %s", n, from)
			}
		}
	})
}
