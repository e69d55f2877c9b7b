package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// CASES: "fifty first times".
func TestFiftyFirstTimes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.CreditMovement(day), "k", "{}")
		var first atomic.Int64
		atOnce(50, func(int) {
			result, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
			if err != nil || string(result.Answer.Body) != "1" {
				t.Errorf("%+v, %v", result, err)
			}
			if !result.Replayed {
				first.Add(1)
			}
		})
		if first.Load() != 1 || f.units(t, "k") != 1 {
			t.Errorf("%d were first, %d units of work", first.Load(), f.units(t, "k"))
		}
	})
}

// atOnce runs n goroutines that begin together and waits for their end.
func atOnce(n int, do func(i int)) {
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	all.Wait()
}

func TestFiftyClaims(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.CreditMovement(day), "k", "{}")
		for epoch := int64(1); epoch <= 3; epoch++ { // a new key, then abandoned ones
			var owners, busy atomic.Int64
			atOnce(50, func(int) {
				c, err := f.Claim(t.Context(), r, lease)
				switch {
				case err != nil:
					t.Error(err)
				case c.Judgement.Verdict == idempotency.Fresh && c.Owner.Epoch == epoch:
					owners.Add(1)
				case c.Judgement.Verdict == idempotency.Busy && c.Record.Owner.Epoch == epoch:
					busy.Add(1)
				default:
					t.Errorf("epoch %d: %+v", epoch, c)
				}
			})
			if owners.Load() != 1 || busy.Load() != 49 {
				t.Errorf("epoch %d: %d owners, %d busy", epoch, owners.Load(), busy.Load())
			}
			f.clock.advance(lease)
		}
	})
}

// Two processes, keys in any order, transactions with several keys in one
// order: no deadlock, no error, one unit of work for each key (K3).
func TestMixedKeysFromTwoProcesses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL, once, ownClock)
	o := sqlstore.Options{DB: f.source.open(t), Dialect: f.source.Dialect}
	once(&o)
	second, err := sqlstore.New(o)
	must(t, err)
	const keys = 12
	p := idempotency.CreditMovement(day)
	atOnce(16, func(i int) {
		s := []*sqlstore.Store{f.Store, second}[i%2]
		for _, k := range rand.Perm(keys) {
			name := fmt.Sprint(k)
			if _, err := s.Run(t.Context(), request(p, name, "{}"), unit(t.Context(), name, ok(name))); err != nil {
				t.Error(err)
			}
		}
	})
	atOnce(16, func(i int) {
		s, db := []*sqlstore.Store{f.Store, second}[i%2], []*sql.DB{f.db, o.DB}[i%2]
		if err := inOrder(t.Context(), s, db, keys+4); err != nil {
			t.Error(err)
		}
	})
	for k := range keys + 4 {
		if n := f.units(t, fmt.Sprint(k)); n != 1 {
			t.Errorf("key %d: %d units of work", k, n)
		}
	}
}

// inOrder does n units of work in one transaction.
func inOrder(ctx context.Context, s *sqlstore.Store, db *sql.DB, n int) error {
	return (&unsure{db: db}).write(ctx, func(tx *sql.Tx) error {
		for k := range n {
			r := request(idempotency.CreditMovement(day), fmt.Sprint(k), "{}")
			if _, err := s.Do(ctx, tx, r, unit(ctx, r.Key, ok(r.Key))); err != nil {
				return err
			}
		}
		return nil
	})
}

// Transactions that take several keys in opposite order deadlock; the default
// Write runs the victim again, and still each key has one unit of work.
func TestOppositeOrdersAreRunAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL)
	p := idempotency.CreditMovement(day)
	var met sync.WaitGroup
	met.Add(2)
	var deadlocks atomic.Int64
	atOnce(2, func(i int) {
		first, second := fmt.Sprint(i), fmt.Sprint(1-i)
		meet := sync.OnceFunc(func() { met.Done(); met.Wait() })
		_, err := f.Run(t.Context(), request(p, first, "{}"), func(tx *sql.Tx) (idempotency.Answer, error) {
			meet() // both hold their first key now
			_, err := f.Do(t.Context(), tx, request(p, second, "{}"), unit(t.Context(), second, ok("1")))
			if sqlstore.Repeatable(err) {
				deadlocks.Add(1)
			}
			if err != nil {
				return idempotency.Answer{}, err
			}
			return ok("1"), record(t.Context(), tx, first)
		})
		if err != nil {
			t.Error(err)
		}
	})
	if deadlocks.Load() == 0 {
		t.Error("there was no deadlock")
	}
	for _, name := range []string{"0", "1"} {
		if n := f.units(t, name); n != 1 {
			t.Errorf("key %s: %d units of work", name, n)
		}
	}
}

// Two requests with one key and other bodies: one is done, the other conflicts.
func TestTwoBodiesAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		for round := range 10 {
			key := fmt.Sprint(round)
			var done, conflicts atomic.Int64
			atOnce(2, func(i int) {
				r := request(idempotency.CreditMovement(day), key, fmt.Sprint(i))
				result, err := f.Run(t.Context(), r, unit(t.Context(), key, ok(fmt.Sprint(i))))
				switch {
				case errors.Is(err, &idempotency.Error{Problem: idempotency.Mismatch}):
					conflicts.Add(1)
				case err == nil && !result.Replayed && string(result.Answer.Body) == fmt.Sprint(i):
					done.Add(1)
				default:
					t.Errorf("%+v, %v", result, err)
				}
			})
			if done.Load() != 1 || conflicts.Load() != 1 || f.units(t, key) != 1 {
				t.Errorf("%d done, %d conflicts, %d units", done.Load(), conflicts.Load(), f.units(t, key))
			}
		}
	})
}

// The second request hears of the first one's end, not of its middle: after a
// refusal it does the work itself.
func TestWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"refused": true, "done": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, sqlstore.PostgreSQL)
			r := request(idempotency.CreditMovement(day), "k", "{}")
			tx := f.begin(t, nil)
			_, err := f.Do(t.Context(), tx, r, unit(t.Context(), "first", ok("first")))
			must(t, err)
			results := make(chan idempotency.Result)
			go func() {
				result, err := f.Run(t.Context(), r, unit(t.Context(), "second", ok("second")))
				if err != nil {
					t.Error(err)
				}
				results <- result
			}()
			f.waitBlocked(t, 1)
			if _, fresh, err := f.Judge(t.Context(), r); !fresh || err != nil {
				t.Errorf("a verdict left before COMMIT: %v", err) // K2
			}
			if refused {
				must(t, tx.Rollback())
			} else {
				commit(t, tx)
			}
			result, want := <-results, map[bool]string{true: "second", false: "first"}[refused]
			if result.Replayed == refused || string(result.Answer.Body) != want || f.units(t, want) != 1 {
				t.Errorf("%+v", result)
			}
		})
	}
}

var errInsufficient = errors.New("insufficient")

// charge100 takes 100 from the balance of c1, or refuses.
func charge100(ctx context.Context, tx *sql.Tx) (idempotency.Answer, error) {
	done, err := tx.ExecContext(ctx, `UPDATE balance SET amount = amount - 100 WHERE customer = 'c1' AND amount >= 100`)
	if err != nil {
		return idempotency.Answer{}, err
	}
	if n, err := done.RowsAffected(); n == 0 {
		return idempotency.Answer{}, errors.Join(errInsufficient, err)
	}
	return ok("charged"), record(ctx, tx, "charge")
}

// CASES: "whole balance".
func TestWholeBalance(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		_, err := f.db.ExecContext(t.Context(), `INSERT INTO balance VALUES ('c1', 100)`)
		must(t, err)
		r := request(idempotency.CreditMovement(day), "k", "{}")
		var replays atomic.Int64
		atOnce(8, func(int) {
			result, err := f.Run(t.Context(), r, func(tx *sql.Tx) (idempotency.Answer, error) { return charge100(t.Context(), tx) })
			if err != nil || string(result.Answer.Body) != "charged" {
				t.Errorf("%+v, %v", result, err)
			}
			if result.Replayed {
				replays.Add(1)
			}
		})
		if replays.Load() != 7 || f.units(t, "charge") != 1 {
			t.Errorf("%d replays, %d entries", replays.Load(), f.units(t, "charge"))
		}
		r.Key = "k2"
		_, err = f.Run(t.Context(), r, func(tx *sql.Tx) (idempotency.Answer, error) { return charge100(t.Context(), tx) })
		if !errors.Is(err, errInsufficient) || f.rows(t) != 1 {
			t.Errorf("another key: %v, %d keys", err, f.rows(t))
		}
	})
}
