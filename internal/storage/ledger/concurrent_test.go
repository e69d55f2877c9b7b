package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// twoProcesses are two services on one PostgreSQL, with pools of their own.
func twoProcesses(t *testing.T) (one, other *bench) {
	t.Helper()
	o := storagetest.PostgreSQL(t, storagetest.Accounts)
	one = newBenchOn(t, o)
	second := *one
	second.db = storagetest.Open(t, o)
	return one, &second
}

// K3: two processes run groups of the same keys, customers and types in random
// order, first making all of them at the same moment. No two wait for each
// other, each key is one movement, and nothing is lost.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	one, other := twoProcesses(t)
	const groups, members, keys = 250, 12, 2500
	var all sync.WaitGroup
	for n, b := range []*bench{one, one, other, other} {
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(n)))
			for range groups {
				var ops []*credit.Op
				for _, key := range random.Perm(keys)[:members] {
					ops = append(ops, b.op(t, order{
						kind: credit.Topup, key: fmt.Sprint("k", key), customer: fmt.Sprint("c", key%11), typ: fmt.Sprint("t", key%3), amount: 1,
					}))
				}
				if err := b.apply(t, ops...); err != nil {
					t.Error(err)
					return
				}
				for _, op := range ops {
					if err := op.Outcome.Err; err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if n := one.deadlocks(t); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	movements := one.count(t, "movements")
	if taken := one.count(t, "idempotency_keys WHERE state = 'done'"); taken != movements || taken < keys*9/10 {
		t.Errorf("%d keys and %d movements", taken, movements)
	}
	if n := one.count(t, "customers"); n != 11 {
		t.Errorf("%d customers", n)
	}
	one.audit(t)
}

// K3, closer: in every round all begin at once with nearly the same new keys,
// customers and types, each in an order of its own; in every other one with
// keys of its own, and in half of these with known customers, so that nothing
// but the customers, or the types, is shared.
func TestTwoProcessesMakeTheSame(t *testing.T) {
	t.Parallel()
	one, other := twoProcesses(t)
	const rounds, keys = 48, 16
	for round := range rounds {
		var all sync.WaitGroup
		start := make(chan struct{})
		for worker, b := range []*bench{one, other, one, other} {
			var ops []*credit.Op
			for _, n := range rand.Perm(keys)[:keys-2] {
				name := fmt.Sprint(round, " ", n)
				o := order{kind: credit.Topup, key: name, customer: name, typ: fmt.Sprint(round, " ", n%7), amount: 1}
				if round%2 == 1 {
					o.key = fmt.Sprint(name, " ", worker)
				}
				if round%4 == 3 {
					o.customer = fmt.Sprint("known ", n)
				}
				ops = append(ops, b.op(t, o))
			}
			all.Go(func() {
				<-start
				if err := b.apply(t, ops...); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		all.Wait()
	}
	if n := one.deadlocks(t); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	if keys, movements := one.count(t, "idempotency_keys"), one.count(t, "movements"); keys != movements {
		t.Errorf("%d keys, %d movements", keys, movements)
	}
	one.audit(t)
}

// deadlocks counts those that PostgreSQL has ended. Its counters may be late:
// they are asked after a statement that flushes them.
func (b *bench) deadlocks(t *testing.T) int {
	t.Helper()
	var n int
	if err := b.db.Reader().QueryRowContext(t.Context(),
		`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// K1 across processes and groups: fifty equal requests, each in a group of its
// own with others, are one movement.
func TestOneKeyInManyGroups(t *testing.T) {
	t.Parallel()
	one, other := twoProcesses(t)
	one.must(t, one.op(t, order{kind: credit.Topup, key: "t", customer: "ada", amount: 100}))
	var all sync.WaitGroup
	answers := make([]string, 50)
	fresh := make([]bool, len(answers))
	for i := range answers {
		b := []*bench{one, other}[i%2]
		all.Go(func() {
			op := b.op(t, order{kind: credit.Charge, key: "k", customer: "ada", amount: 100})
			company := b.op(t, order{kind: credit.Topup, key: fmt.Sprint("c", i), customer: "bob", amount: 1})
			if err := b.apply(t, company, op); err != nil || op.Outcome.Err != nil {
				t.Error(err, op.Outcome.Err)
				return
			}
			answers[i], fresh[i] = string(op.Outcome.Key.Answer.Body), !op.Outcome.Key.Replayed
		})
	}
	all.Wait()
	first := 0
	for i, answer := range answers {
		if fresh[i] {
			first++
		}
		if answer == "" || answer != answers[0] {
			t.Errorf("request %d heard %q, the first %q", i, answer, answers[0])
		}
	}
	if first != 1 {
		t.Errorf("%d requests were the first", first)
	}
	one.want(t, "ada", "main", "0/0")
	one.want(t, "bob", "main", "0.00005/0")
	one.audit(t)
}

// One hold that is placed by two processes at once, of two credit types, is
// one hold.
func TestOneHoldInTwoProcesses(t *testing.T) {
	t.Parallel()
	one, other := twoProcesses(t)
	for _, typ := range []string{"main", "other"} {
		one.must(t, one.op(t, order{kind: credit.Topup, key: typ, customer: "ada", typ: typ, amount: 1000}))
	}
	for i := range 40 {
		var all sync.WaitGroup
		for n, b := range []*bench{one, other} {
			all.Go(func() {
				op := b.place("ada", fmt.Sprint("h", i), 1, time.Time{})
				op.Subject.CreditType = []string{"main", "other"}[n]
				if b.apply(t, op) != nil { // as the queue does
					b.must(t, op)
				}
			})
		}
		all.Wait()
	}
	if n := one.count(t, "holds"); n != 40 {
		t.Errorf("%d holds", n)
	}
	one.audit(t)
}

// K5: while groups run without a break, the sweeps get their turn, and what is
// asked for gets the same answer before and after.
func TestSweepsUnderLoad(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		if _, err := b.move(t, credit.Topup, "t", "ada", "1000"); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if _, err := b.move(t, credit.Charge, fmt.Sprint(i, " ", n), "ada", "0.01"); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		slowest := time.Duration(0)
		for range 20 {
			began := time.Now()
			if _, err := b.db.Keys().Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			slowest = max(slowest, time.Since(began))
		}
		stop()
		all.Wait()
		if slowest > 30*time.Second {
			t.Errorf("a sweep took %v", slowest)
		}
		if m, err := b.move(t, credit.Topup, "t", "ada", "1000"); err != nil || !m.Replayed || m.Answer == nil {
			t.Errorf("%+v %v", m, err)
		}
	})
}

// A sweep of balances by another process and groups do not disturb each other.
func TestDueBalancesAreListed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		now := time.Now()
		b.now = func() time.Time { return now }
		b.must(t, b.op(t, order{kind: credit.Topup, key: "t", customer: "ada", amount: 5, grant: credit.Grant{Priority: 1, ExpiresAt: now.Add(time.Hour)}}))
		store := ledger.New(b.db)
		for _, step := range []struct {
			wait time.Duration
			due  int
		}{{0, 0}, {time.Hour - time.Microsecond, 0}, {time.Microsecond, 1}} {
			now = now.Add(step.wait)
			due, err := store.ListDue(t.Context(), now, 10)
			if err != nil || len(due) != step.due {
				t.Errorf("%v: %v %v", step.wait, due, err)
			}
		}
		if n, err := b.service.Sweep(t.Context()); n != 1 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		if n, err := b.service.Sweep(t.Context()); n != 0 || err != nil {
			t.Errorf("swept %d again, %v", n, err)
		}
		b.want(t, "ada", "main", "0/0")
	})
}
