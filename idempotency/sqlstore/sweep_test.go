package sqlstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// sweepLater sweeps by a clock that is past every retention.
func (f *fixture) sweepLater(ctx context.Context, t testing.TB) int64 {
	t.Helper()
	s, err := sqlstore.New(sqlstore.Options{DB: f.db, Dialect: f.source.Dialect, Clock: func() time.Time {
		return f.clock.now().Add(365 * day)
	}})
	must(t, err)
	n, err := s.Sweep(ctx)
	must(t, err)
	return n
}

// A sweep goes over more than one group, and finds nothing the second time.
func TestSweepRemovesWhatHasExpired(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		tx := f.begin(t, nil)
		const n = sqlstore.SweepGroup + 7
		for i := range n {
			for _, p := range []idempotency.Policy{idempotency.CreditMovement(day), idempotency.IETF(2 * day)} {
				_, err := f.Do(t.Context(), tx, request(p, fmt.Sprint(i), "{}"), unit(t.Context(), "k", ok("1")))
				must(t, err)
			}
		}
		commit(t, tx)
		free, held := request(idempotency.IETF(day), "free", ""), request(idempotency.IETF(day), "held", "")
		must(t, f.Release(t.Context(), free.Ref(), f.claim(t, free, idempotency.Fresh).Owner))
		c := f.claim(t, held, idempotency.Fresh)
		must(t, f.Renew(t.Context(), held.Ref(), c.Owner, 10*day))
		for _, step := range []struct {
			pass    time.Duration
			changed int64
			rows    int
		}{
			{sqlstore.SweepGrace - time.Microsecond, 0, 2*n + 2},
			{time.Microsecond, 1, 2*n + 1},              // the free key
			{day - time.Microsecond, 0, 2*n + 1},        // answers have expired, but for the grace
			{time.Microsecond, n, 2*n + 1},              // answers of movements
			{day, 2 * n, n + 1},                         // answers and keys of the other policy
			{8*day - sqlstore.SweepGrace, 0, n + 1},     // the lease has ended
			{sqlstore.SweepGrace - time.Hour, 0, n + 1}, // and the grace after it
			{time.Hour, 1, n},
			{100 * 365 * day, 0, n},
		} {
			f.clock.advance(step.pass)
			for _, want := range []int64{step.changed, 0} {
				changed, err := f.Sweep(t.Context())
				if err != nil || changed != want || f.rows(t) != step.rows {
					t.Errorf("at %s: %d changed, %v, %d keys, want %d, %d", f.clock.now(), changed, err, f.rows(t), want, step.rows)
				}
			}
		}
	})
}

// Between the conflict of a claim and its look at the row, the row may go, or
// be another one of the same key, or lose its answer.
func TestSweepBetweenConflictAndRead(t *testing.T) {
	t.Parallel()
	r := request(idempotency.IETF(day), "k", "1")
	second := request(idempotency.IETF(day), "k", "2")
	for name, c := range map[string]struct {
		between  func(t *testing.T, f *fixture)
		replayed bool
	}{
		"nothing": {func(*testing.T, *fixture) {}, false},
		"swept":   {func(t *testing.T, f *fixture) { f.sweepLater(t.Context(), t) }, false},
		// The new row has the old one's epoch and state: only its token differs.
		"swept and done again": {func(t *testing.T, f *fixture) {
			f.sweepLater(t.Context(), t)
			_, err := f.Run(t.Context(), second, unit(t.Context(), "k", ok("2")))
			must(t, err)
		}, true},
		"taken over": {func(t *testing.T, f *fixture) {
			_, err := f.Run(t.Context(), second, unit(t.Context(), "k", ok("2")))
			must(t, err)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, sqlstore.PostgreSQL)
			_, err := f.Run(t.Context(), r, unit(t.Context(), "old", ok("1")))
			must(t, err)
			f.clock.advance(day) // forgotten
			other, err := sqlstore.New(sqlstore.Options{DB: f.db, Dialect: f.source.Dialect, Clock: f.clock.now})
			must(t, err)
			var once sync.Once
			other.SetStep(func(step string) {
				if step == "read" {
					once.Do(func() { c.between(t, f) })
				}
			})
			result, err := other.Run(t.Context(), second, unit(t.Context(), "k", ok("2")))
			if err != nil || result.Replayed != c.replayed || string(result.Answer.Body) != "2" || f.units(t, "k") != 1 {
				t.Errorf("%+v, %v, %d units", result, err, f.units(t, "k"))
			}
		})
	}
}

// What the owner before has made while its claim was being taken over is not
// lost.
func TestMadeDuringTakeover(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL)
	r := request(idempotency.IETF(day), "k", "1")
	c := f.claim(t, r, idempotency.Fresh)
	f.clock.advance(lease)
	made := idempotency.Resource{Kind: "run", ID: "late"}
	f.SetStep(func(step string) {
		if step == "read" {
			must(t, f.Made(t.Context(), r.Ref(), c.Owner, made))
		}
	})
	if next := f.claim(t, r, idempotency.Fresh); next.Record.Resource != made || next.Owner.Epoch != 2 {
		t.Errorf("%+v", next)
	}
}

// An owner that renews while its claim is being taken over keeps it.
func TestRenewDuringTakeover(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL)
	r := request(idempotency.IETF(day), "k", "1")
	c := f.claim(t, r, idempotency.Fresh)
	f.clock.advance(lease)
	f.SetStep(func(step string) {
		if step == "read" {
			must(t, f.Renew(t.Context(), r.Ref(), c.Owner, lease))
		}
	})
	f.claim(t, r, idempotency.Busy)
	must(t, f.Complete(t.Context(), r, c.Owner, ok("1")))
}

// Claims, repeats and sweeps that run into one another all the time: every
// request is answered, and each round has one unit of work.
func TestSweepAmidClaims(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.IETF(day), "k", "1")
		for round := range 10 {
			name := fmt.Sprint(round)
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() {
					if _, err := f.Run(t.Context(), r, unit(t.Context(), name, ok(name))); err != nil {
						t.Error(err)
					}
				})
			}
			all.Go(func() {
				if _, err := f.Sweep(t.Context()); err != nil {
					t.Error(err)
				}
			})
			all.Wait()
			if n := f.units(t, name); n != 1 {
				t.Errorf("round %d: %d units of work", round, n)
			}
			f.clock.advance(day + sqlstore.SweepGrace)
		}
	})
}

// A sweep does not wait for a transaction that holds a key, and takes the
// others.
func TestSweepSkipsWhatIsHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL)
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		_, err := f.Run(t.Context(), request(idempotency.IETF(day), key, ""), unit(t.Context(), key, ok("1")))
		must(t, err)
	}
	f.clock.advance(day)
	tx := f.begin(t, nil)
	_, err := f.Do(t.Context(), tx, request(idempotency.IETF(day), "b", ""), unit(t.Context(), "again", ok("2")))
	must(t, err)
	if n := f.sweepLater(t.Context(), t); n != 4 || f.rows(t) != 1 {
		t.Errorf("%d changed, %d keys", n, f.rows(t))
	}
	commit(t, tx)
	if again, err := f.Run(t.Context(), request(idempotency.IETF(day), "b", ""), never(t)); err != nil || !again.Replayed {
		t.Errorf("%+v, %v", again, err)
	}
}

// AddCounts locks rows in one order and leaves its argument alone.
func TestAddCountsSorts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d, once)
		var counts []idempotency.Count
		for i := range 20 {
			r := request(idempotency.CreditMovement(day), fmt.Sprint(i), "")
			r.Scope = strings.Repeat("s", 1+i%3)
			_, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
			must(t, err)
			counts = append(counts, idempotency.Count{Ref: r.Ref(), Repeats: 2, Conflicts: int64(i)})
		}
		counts = append(counts, idempotency.Count{Ref: idempotency.Ref{Scope: "s", Namespace: "n", Key: "none"}, Repeats: 1})
		backwards := slices.Clone(counts)
		slices.Reverse(backwards)
		before := slices.Clone(backwards)
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if err := f.AddCounts(t.Context(), [][]idempotency.Count{counts, backwards}[i%2]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if !slices.Equal(before, backwards) || f.rows(t) != 20 {
			t.Errorf("the argument was changed, or a key made: %d", f.rows(t))
		}
		for _, c := range counts[:20] {
			rec, _, err := f.Find(t.Context(), c.Ref)
			if err != nil || rec.Repeats != 16*c.Repeats || rec.Conflicts != 16*c.Conflicts {
				t.Errorf("%+v, %v", rec, err)
			}
		}
	})
}
