package sqlstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

const lease = 30 * time.Second

// claim claims a key and fails the test unless the verdict is the wanted one.
func (f *fixture) claim(t testing.TB, r idempotency.Request, want idempotency.Verdict) idempotency.Claim {
	t.Helper()
	c, err := f.Claim(t.Context(), r, lease)
	if err != nil || c.Judgement.Verdict != want {
		t.Fatalf("verdict %d, %v, want %d", c.Judgement.Verdict, err, want)
	}
	return c
}

func wantLost(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, idempotency.ErrLeaseLost) {
		t.Errorf("got %v, want ErrLeaseLost", err)
	}
}

func TestLeasedLife(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.IETF(day), "k", "{}")
		began := f.clock.now()
		c := f.claim(t, r, idempotency.Fresh)
		if c.Owner.Epoch != 1 || !c.Owner.ExpiresAt.Equal(began.Add(lease)) || c.Record.Resource.ID != "" {
			t.Errorf("claimed %+v", c)
		}
		busy := f.claim(t, r, idempotency.Busy)
		if busy.Record.State != idempotency.Claimed || busy.Record.Owner != c.Owner {
			t.Errorf("busy %+v", busy.Record)
		}
		_, _, err := f.Judge(t.Context(), r)
		problem(t, err, idempotency.StillRunning)
		_, err = f.Run(t.Context(), r, never(t))
		problem(t, err, idempotency.StillRunning)
		other := r
		other.Body = []byte("other")
		f.claim(t, other, idempotency.Conflicting) // before it is called busy

		f.clock.advance(lease - 1)
		must(t, f.Renew(t.Context(), r.Ref(), c.Owner, lease))
		f.clock.advance(lease - 1)
		f.claim(t, r, idempotency.Busy)
		made := idempotency.Resource{Kind: "run", ID: "r1"}
		must(t, f.Made(t.Context(), r.Ref(), c.Owner, made))
		must(t, f.Made(t.Context(), r.Ref(), c.Owner, made))
		for range 2 { // the answer to the first may be lost
			must(t, f.Complete(t.Context(), r, c.Owner, idempotency.Answer{Status: 201, Body: []byte("x")}))
		}
		again := f.claim(t, r, idempotency.Repeated)
		if again.Record.Resource != made || string(again.Record.Answer.Body) != "x" || !again.Record.CreatedAt.Equal(began) ||
			!again.Record.AnswerExpiresAt.Equal(f.clock.now().Add(day)) {
			t.Errorf("%+v", again.Record)
		}
		wantLost(t, f.Renew(t.Context(), r.Ref(), c.Owner, lease))
		wantLost(t, f.Made(t.Context(), r.Ref(), c.Owner, made))
		wantLost(t, f.Release(t.Context(), r.Ref(), c.Owner))
	})
}

func TestReleasedKeysAreFree(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.CreditMovement(day), "k", "{}")
		for epoch := int64(1); epoch <= 3; epoch++ {
			r.Body = []byte{byte('0' + epoch)} // a free key takes any body
			c := f.claim(t, r, idempotency.Fresh)
			if c.Owner.Epoch != epoch || c.Record.Resource.ID != "" {
				t.Errorf("epoch %d: %+v", epoch, c)
			}
			must(t, f.Made(t.Context(), r.Ref(), c.Owner, idempotency.Resource{Kind: "run", ID: "r"}))
			must(t, f.Release(t.Context(), r.Ref(), c.Owner))
			must(t, f.Release(t.Context(), r.Ref(), c.Owner))
			if _, found, err := f.Find(t.Context(), r.Ref()); found || err != nil {
				t.Errorf("a free key was found: %v", err)
			}
			if _, fresh, err := f.Judge(t.Context(), r); !fresh || err != nil {
				t.Errorf("a free key is not fresh: %v", err)
			}
			wantLost(t, f.Renew(t.Context(), r.Ref(), c.Owner, lease))
			wantLost(t, f.Made(t.Context(), r.Ref(), c.Owner, idempotency.Resource{}))
			wantLost(t, f.Complete(t.Context(), r, c.Owner, ok("1")))
		}
		result, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
		if err != nil || result.Replayed || result.Record.Owner.Epoch != 4 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// An owner that stalls past its lease is fenced off: nothing it writes counts,
// and the next owner learns what it has made.
func TestTakeover(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.CreditMovement(day), "k", "{}")
		stalled := f.claim(t, r, idempotency.Fresh)
		made := idempotency.Resource{Kind: "run", ID: "r1"}
		must(t, f.Made(t.Context(), r.Ref(), stalled.Owner, made))
		f.clock.advance(lease)
		other := r
		other.Body = []byte("other")
		f.claim(t, other, idempotency.Conflicting) // an abandoned key still names its work
		next := f.claim(t, r, idempotency.Fresh)
		if next.Owner.Epoch != 2 || next.Owner.Token == stalled.Owner.Token || next.Record.Resource != made {
			t.Fatalf("%+v", next)
		}
		forged := next.Owner
		forged.Token = stalled.Owner.Token
		for _, o := range []idempotency.Owner{stalled.Owner, forged, {Token: next.Owner.Token, Epoch: 1}} {
			wantLost(t, f.Renew(t.Context(), r.Ref(), o, lease))
			wantLost(t, f.Made(t.Context(), r.Ref(), o, idempotency.Resource{Kind: "run", ID: "r2"}))
			wantLost(t, f.Complete(t.Context(), r, o, ok("stale")))
			wantLost(t, f.Release(t.Context(), r.Ref(), o))
		}
		must(t, f.Complete(t.Context(), r, next.Owner, idempotency.Answer{Status: 200, Body: []byte("1")}))
		wantLost(t, f.Complete(t.Context(), r, stalled.Owner, ok("stale")))
		got := f.claim(t, r, idempotency.Repeated).Record
		if got.Resource != made || string(got.Answer.Body) != "1" || got.Owner.Epoch != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// An owner past its lease that nobody has followed goes on.
func TestLateOwner(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.CreditMovement(day), "k", "{}")
		c := f.claim(t, r, idempotency.Fresh)
		f.clock.advance(time.Hour)
		must(t, f.Renew(t.Context(), r.Ref(), c.Owner, lease))
		f.claim(t, r, idempotency.Busy)
		f.clock.advance(time.Hour)
		must(t, f.Complete(t.Context(), r, c.Owner, ok("1")))
		f.claim(t, r, idempotency.Repeated)
	})
}

// A clock that is set back neither frees a key nor ends a lease.
func TestClockBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		held, done := request(idempotency.IETF(day), "held", "{}"), request(idempotency.IETF(day), "done", "{}")
		c := f.claim(t, held, idempotency.Fresh)
		_, err := f.Run(t.Context(), done, unit(t.Context(), "k", ok("1")))
		must(t, err)
		f.clock.advance(-72 * time.Hour)
		f.claim(t, held, idempotency.Busy)
		f.claim(t, done, idempotency.Repeated)
		must(t, f.Renew(t.Context(), held.Ref(), c.Owner, lease))
		f.clock.advance(lease)
		if next := f.claim(t, held, idempotency.Fresh); next.Owner.Epoch != 2 {
			t.Errorf("%+v", next)
		}
	})
}

// A claim that had to wait for another transaction on PostgreSQL begins its
// lease when it gets the key, by the database's own clock.
func TestLeaseBeginsAfterTheWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL, ownClock)
	r := request(idempotency.CreditMovement(day), "k", "{}")
	first := f.begin(t, nil)
	_, err := f.Do(t.Context(), first, r, unit(t.Context(), "k", ok("1")))
	must(t, err)
	claimed := make(chan idempotency.Claim)
	go func() {
		c, err := f.Claim(t.Context(), r, 300*time.Millisecond)
		if err != nil {
			t.Error(err)
		}
		claimed <- c
	}()
	f.waitBlocked(t, 1)
	_, err = first.ExecContext(t.Context(), `SELECT pg_sleep(0.3)`)
	must(t, err)
	must(t, first.Rollback())
	c := <-claimed
	var left float64
	must(t, f.db.QueryRowContext(t.Context(),
		`SELECT lease_expires_at / 1e6 - extract(epoch FROM clock_timestamp()) FROM idempotency_keys`).Scan(&left))
	if c.Judgement.Verdict != idempotency.Fresh || left <= 0 {
		t.Errorf("%+v: %f s are left of the lease", c, left)
	}
}
