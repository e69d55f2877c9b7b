package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// batchOf runs the statements of a group in a transaction, one by one.
func batchOf(tx *sql.Tx) sqlstore.Batch {
	return func(ctx context.Context, statements []sqlstore.Statement) error {
		for _, one := range statements {
			rows, err := tx.QueryContext(ctx, one.Text, one.Args...)
			if err != nil {
				return err
			}
			for err == nil && rows.Next() {
				err = one.Row(rows.Scan)
			}
			if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
				return err
			}
		}
		return nil
	}
}

// group runs a group: members that may do their work and whose key is not
// refused leave a row under its name.
func (f *fixture) group(t testing.TB, refused string, members ...*sqlstore.Member) error {
	t.Helper()
	return inOne(context.WithoutCancel(t.Context()), f.db, func(ctx context.Context, tx *sql.Tx) error {
		batch := batchOf(tx)
		if err := f.ClaimGroup(ctx, batch, members); err != nil {
			return err
		}
		var done, free []*sqlstore.Member
		var answers []idempotency.Answer
		for _, m := range members {
			switch {
			case m.Claim.Judgement.Verdict != idempotency.Fresh:
			case m.Request.Key == refused:
				free = append(free, m)
			default:
				if err := record(ctx, tx, m.Request.Key); err != nil {
					return err
				}
				done, answers = append(done, m), append(answers, ok(m.Request.Key))
			}
		}
		statements, err := f.CompleteGroup(done, answers)
		if err != nil {
			return err
		}
		return batch(ctx, append(statements, f.FreeGroup(free)...))
	})
}

// inOne runs fn in a transaction.
func inOne(ctx context.Context, db *sql.DB, fn func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func member(p idempotency.Policy, key, body string) *sqlstore.Member {
	r := request(p, key, body)
	m := &sqlstore.Member{Request: &r}
	for i := range m.Token {
		m.Token[i] = byte(rand.IntN(256))
	}
	return m
}

// A group judges each member as Do would: keys that are new, done, held,
// abandoned, free and forgotten.
func TestGroup(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		p := idempotency.CreditMovement(day)
		first := member(p, "done", "{}")
		must(t, f.group(t, "", first))
		for key, lease := range map[string]time.Duration{"held": time.Hour, "abandoned": time.Microsecond, "free": time.Hour} {
			claim, err := f.Claim(t.Context(), request(p, key, "{}"), lease)
			must(t, err)
			if key == "free" {
				r := request(p, key, "")
				must(t, f.Release(t.Context(), r.Ref(), claim.Owner))
			}
		}
		short := p
		short.Retention = idempotency.Retention{Answer: time.Minute, Key: time.Minute}
		must(t, f.group(t, "", member(short, "forgotten", "{}")))
		f.clock.advance(2 * time.Minute)
		members := []*sqlstore.Member{
			member(p, "new", "{}"), member(p, "done", "{}"), member(p, "held", "{}"), member(p, "abandoned", "{}"),
			member(p, "free", "[]"), member(p, "forgotten", "[]"), member(p, "refused", "{}"),
		}
		must(t, f.group(t, "refused", members...))
		for i, want := range []idempotency.Verdict{
			idempotency.Fresh, idempotency.Repeated, idempotency.Busy, idempotency.Fresh, idempotency.Fresh, idempotency.Fresh, idempotency.Fresh,
		} {
			m := members[i]
			if got := m.Claim.Judgement.Verdict; got != want || m.Mine {
				t.Errorf("%s: verdict %d, want %d; mine: %v", m.Request.Key, got, want, m.Mine)
			}
		}
		for key, want := range map[string]int{"new": 1, "done": 1, "held": 0, "abandoned": 1, "free": 1, "forgotten": 2, "refused": 0} {
			if n := f.units(t, key); n != want {
				t.Errorf("%s: %d units of work, want %d", key, n, want)
			}
		}
		if _, fresh, err := f.Judge(t.Context(), request(p, "refused", "other")); !fresh || err != nil {
			t.Errorf("a refusal has taken its key: %v", err)
		}
		// The same member again: its COMMIT was not confirmed.
		must(t, f.group(t, "", first))
		if !first.Mine || first.Claim.Judgement.Verdict != idempotency.Repeated || f.units(t, "done") != 1 {
			t.Errorf("its own work is not its own: %+v", first.Claim)
		}
	})
}

func TestGroupRefusesOneKeyTwice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		p := idempotency.CreditMovement(day)
		if err := f.group(t, "", member(p, "b", "{}"), member(p, "a", "{}"), member(p, "b", "{}")); err == nil {
			t.Error("a group had one key twice")
		}
		if f.rows(t) != 0 || f.units(t, "b") != 0 {
			t.Error("it has left something")
		}
		must(t, f.group(t, ""))
	})
}

// Groups of shuffled keys, some of them refused, so that rows come and go: each
// key is one unit of work in the end, and nobody fails.
func TestGroupsAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		p := idempotency.CreditMovement(day)
		const keys, rounds = 24, 20
		var refusals atomic.Int64
		atOnce(6, func(int) {
			for round := range rounds {
				var members []*sqlstore.Member
				for _, k := range rand.Perm(keys)[:keys/2] {
					members = append(members, member(p, fmt.Sprint(k), "{}"))
				}
				refused := ""
				if round < rounds/2 {
					refused = members[0].Request.Key
					refusals.Add(1)
				}
				if err := f.group(t, refused, members...); err != nil {
					t.Error(err)
				}
			}
		})
		for k := range keys {
			if n := f.units(t, fmt.Sprint(k)); n != 1 {
				t.Errorf("key %d: %d units of work", k, n)
			}
		}
		if n := f.rows(t); n != keys || refusals.Load() == 0 {
			t.Errorf("%d rows of %d keys, %d refusals", n, keys, refusals.Load())
		}
	})
}
