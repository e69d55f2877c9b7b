package sqlstore_test

import (
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// swept runs a test twice on each engine: with sweeps, by a clock that is well
// ahead, after every step of time, and without. The test must not notice.
func swept(t *testing.T, test func(t *testing.T, f *fixture, pass func(time.Duration))) {
	t.Helper()
	for _, sweeps := range []bool{false, true} {
		t.Run(map[bool]string{false: "never swept", true: "swept"}[sweeps], func(t *testing.T) {
			onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
				f := newFixture(t, d)
				test(t, f, func(d time.Duration) {
					f.clock.advance(d)
					if !sweeps {
						return
					}
					f.clock.advance(sqlstore.SweepGrace)
					_, err := f.Sweep(t.Context())
					must(t, err)
					f.clock.advance(-sqlstore.SweepGrace)
				})
			})
		})
	}
}

func charge(method, creditType, amount string) idempotency.Request {
	r := request(idempotency.CreditMovement(day), "k", `{"credit_type":"`+creditType+`","amount":`+amount+`}`)
	r.Facts = []idempotency.Fact{{Name: "method", Value: method}, {Name: "customer", Value: "c1"}}
	return r
}

// CASES: "pruned key", after Stripe.
func TestPrunedKey(t *testing.T) {
	t.Parallel()
	swept(t, func(t *testing.T, f *fixture, pass func(time.Duration)) {
		first := charge("charge", "main", `"5"`)
		_, err := f.Run(t.Context(), first, unit(t.Context(), "k", ok("1")))
		must(t, err)
		pass(day - time.Microsecond)
		kept, err := f.Run(t.Context(), first, never(t))
		if err != nil || !kept.Replayed || kept.AnswerExpired || string(kept.Answer.Body) != "1" {
			t.Fatalf("while it is kept: %+v, %v", kept, err)
		}
		_, err = f.Run(t.Context(), charge("charge", "main", `5.0`), never(t))
		problem(t, err, idempotency.Mismatch) // other bytes
		pass(time.Microsecond)
		for _, amount := range []string{`"5"`, `5`, `"5.00"`, `5.0`} {
			again, err := f.Run(t.Context(), charge("charge", "main", amount), never(t))
			if err != nil || !again.Replayed || !again.AnswerExpired || again.Answer != nil || again.Record.Answer != nil ||
				again.Record.Resource != ok("1").Resource {
				t.Errorf("%s: %+v, %v", amount, again, err)
			}
		}
		for name, r := range map[string]idempotency.Request{
			"charge 6": charge("charge", "main", `"6"`), "adjust 5": charge("adjust", "main", `"5"`),
			"other type": charge("charge", "bonus", `"5"`), "no JSON": request(idempotency.CreditMovement(day), "k", "{"),
		} {
			_, err := f.Run(t.Context(), r, never(t))
			if e := problem(t, err, idempotency.Mismatch); e.Record.Resource != ok("1").Resource {
				t.Errorf("%s: %+v", name, e)
			}
		}
		pass(100 * 365 * day)
		if again, err := f.Run(t.Context(), first, never(t)); err != nil || !again.AnswerExpired {
			t.Errorf("after a hundred years: %+v, %v", again, err)
		}
		if f.units(t, "k") != 1 || f.rows(t) != 1 {
			t.Errorf("%d units, %d keys", f.units(t, "k"), f.rows(t))
		}
	})
}

// A key that is forgotten is a new unit of work, also for another body.
func TestForgottenKey(t *testing.T) {
	t.Parallel()
	swept(t, func(t *testing.T, f *fixture, pass func(time.Duration)) {
		first, second := request(idempotency.IETF(day), "k", "1"), request(idempotency.IETF(day), "k", "2")
		_, err := f.Run(t.Context(), first, unit(t.Context(), "first", ok("1")))
		must(t, err)
		must(t, f.AddCounts(t.Context(), []idempotency.Count{{Ref: first.Ref(), Repeats: 1, Conflicts: 2}}))
		pass(day - time.Microsecond)
		_, err = f.Run(t.Context(), second, never(t))
		problem(t, err, idempotency.Mismatch)
		if _, found, err := f.Find(t.Context(), first.Ref()); !found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
		pass(time.Microsecond)
		if _, found, err := f.Find(t.Context(), first.Ref()); found || err != nil {
			t.Errorf("a forgotten key was found: %v", err)
		}
		result, err := f.Run(t.Context(), second, unit(t.Context(), "second", ok("2")))
		if err != nil || result.Replayed {
			t.Fatalf("%+v, %v", result, err)
		}
		rec, found, err := f.Find(t.Context(), second.Ref())
		if err != nil || !found || rec.Repeats != 0 || rec.Conflicts != 0 || !rec.CreatedAt.Equal(f.clock.now()) ||
			!rec.KeyExpiresAt.Equal(f.clock.now().Add(day)) || string(rec.Answer.Body) != "2" {
			t.Errorf("%+v, %v", rec, err)
		}
		_, err = f.Run(t.Context(), first, never(t))
		problem(t, err, idempotency.Mismatch)
	})
}

// An abandoned claim whose key is forgotten passes nothing on: what it has made
// belongs to another unit of work. One that is held is not forgotten.
func TestForgottenClaim(t *testing.T) {
	t.Parallel()
	swept(t, func(t *testing.T, f *fixture, pass func(time.Duration)) {
		r, other := request(idempotency.IETF(day), "k", "1"), request(idempotency.IETF(day), "k", "2")
		c := f.claim(t, r, idempotency.Fresh)
		must(t, f.Made(t.Context(), r.Ref(), c.Owner, idempotency.Resource{Kind: "run", ID: "old"}))
		must(t, f.Renew(t.Context(), r.Ref(), c.Owner, 2*day))
		pass(2*day - time.Microsecond)
		f.claim(t, r, idempotency.Busy)
		f.claim(t, other, idempotency.Conflicting)
		if rec, found, err := f.Find(t.Context(), r.Ref()); !found || err != nil || rec.Resource.ID != "old" {
			t.Errorf("%+v, %v, %v", rec, found, err)
		}
		pass(time.Microsecond)
		next := f.claim(t, other, idempotency.Fresh)
		if next.Record.Resource.ID != "" || next.Owner.Token == c.Owner.Token {
			t.Errorf("%+v", next)
		}
		wantLost(t, f.Complete(t.Context(), r, c.Owner, ok("1")))
		must(t, f.Complete(t.Context(), other, next.Owner, idempotency.Answer{Status: 200}))
		if rec, found, err := f.Find(t.Context(), r.Ref()); !found || err != nil || rec.Resource.ID != "" {
			t.Errorf("%+v, %v, %v", rec, found, err)
		}
	})
}

// Keys that are kept for ever outlive every sweep, claimed or done.
func TestKeptForEver(t *testing.T) {
	t.Parallel()
	swept(t, func(t *testing.T, f *fixture, pass func(time.Duration)) {
		done, claimed := request(idempotency.Execution(), "done", "1"), request(idempotency.Execution(), "claimed", "1")
		_, err := f.Run(t.Context(), done, unit(t.Context(), "k", ok("1")))
		must(t, err)
		c := f.claim(t, claimed, idempotency.Fresh)
		must(t, f.Made(t.Context(), claimed.Ref(), c.Owner, idempotency.Resource{Kind: "run", ID: "r"}))
		pass(100 * 365 * day)
		again, err := f.Run(t.Context(), done, never(t))
		if err != nil || !again.Replayed || again.AnswerExpired || again.Answer != nil || again.Record.Resource.ID != "m-1" {
			t.Errorf("%+v, %v", again, err)
		}
		if next := f.claim(t, claimed, idempotency.Fresh); next.Owner.Epoch != 2 || next.Record.Resource.ID != "r" {
			t.Errorf("%+v", next)
		}
	})
}
