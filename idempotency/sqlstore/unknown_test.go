package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

var (
	errLost  = errors.New("the answer to COMMIT was lost")
	errBegin = errors.New("the database cannot be reached")
)

// What becomes of a transaction of unsure.
type outcome int

const (
	good    outcome = iota
	lost            // it is not committed, and nobody knows
	landed          // it is committed, and nobody knows
	refused         // it does not begin
)

// unsure is an Options.Write whose first transactions end as its outcomes say.
// between is called after each.
type unsure struct {
	db       *sql.DB
	outcomes []outcome
	between  func()
}

func (u *unsure) next() outcome {
	if len(u.outcomes) == 0 {
		return good
	}
	o := u.outcomes[0]
	u.outcomes = u.outcomes[1:]
	return o
}

func (u *unsure) write(ctx context.Context, fn func(*sql.Tx) error) error {
	o := u.next()
	if o == refused {
		return errBegin
	}
	tx, err := u.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	switch o {
	case lost:
		err = errors.Join(errLost, tx.Rollback())
	case landed:
		err = errors.Join(errLost, tx.Commit())
	default:
		return tx.Commit()
	}
	if u.between != nil {
		u.between()
	}
	return err
}

func isLost(err error) bool { return errors.Is(err, errLost) }

// once is an option of stores that run nothing again: a deadlock is an error.
func once(o *sqlstore.Options) { o.Write, o.Unknown = (&unsure{db: o.DB}).write, isLost }

// newUnsure makes a store whose transactions end as outcomes say.
func newUnsure(t *testing.T, d sqlstore.Dialect, outcomes ...outcome) (*fixture, *unsure) {
	t.Helper()
	u := &unsure{outcomes: outcomes}
	f := newFixture(t, d, func(o *sqlstore.Options) {
		u.db = o.DB
		o.Write, o.Unknown = u.write, isLost
	})
	return f, u
}

// Run finds out what became of a COMMIT. Its own work is not a replay, and is
// never done twice; while it cannot find out, it says so.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		outcomes []outcome
		unknown  bool
		units    int // after the first Run
	}{
		"lost":                         {[]outcome{lost}, false, 1},
		"lost twice":                   {[]outcome{lost, lost}, false, 1},
		"lost for good":                {[]outcome{lost, lost, lost}, true, 0},
		"landed":                       {[]outcome{landed}, false, 1},
		"landed, then lost":            {[]outcome{landed, lost}, false, 1},
		"landed for good":              {[]outcome{landed, landed, landed}, true, 1},
		"lost, then landed":            {[]outcome{lost, landed}, false, 1},
		"lost, then unreachable":       {[]outcome{lost, refused, refused}, true, 0},
		"landed, then unreachable":     {[]outcome{landed, refused, refused}, true, 1},
		"landed, unreachable for once": {[]outcome{landed, refused}, false, 1},
	}
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		for name, c := range cases {
			f, _ := newUnsure(t, d, c.outcomes...)
			r := request(idempotency.CreditMovement(day), "k", "{}")
			result, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
			if isLost(err) != c.unknown || !c.unknown && (err != nil || result.Replayed || string(result.Answer.Body) != "1") {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
			if n := f.units(t, "k"); n != c.units {
				t.Errorf("%s: %d units of work, want %d", name, n, c.units)
			}
			again, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
			if err != nil || again.Replayed != (c.units == 1) || string(again.Answer.Body) != "1" || f.units(t, "k") != 1 {
				t.Errorf("%s, again: %+v, %v, %d units", name, again, err, f.units(t, "k"))
			}
		}
	})
}

// A database that cannot be reached at all is no unknown outcome.
func TestNothingWasSent(t *testing.T) {
	t.Parallel()
	f, _ := newUnsure(t, sqlstore.SQLite, refused)
	_, err := f.Run(t.Context(), request(idempotency.CreditMovement(day), "k", "{}"), never(t))
	if !errors.Is(err, errBegin) || isLost(err) {
		t.Error(err)
	}
}

// A claim that succeeds after an unknown COMMIT proves that it had not landed:
// what the work then says is final. So is a conflict.
func TestUnknownCommitThenRefusal(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		r := request(idempotency.CreditMovement(day), "k", "{}")
		f, _ := newUnsure(t, d, lost)
		runs := 0
		_, err := f.Run(t.Context(), r, func(tx *sql.Tx) (idempotency.Answer, error) {
			if runs++; runs > 1 {
				return idempotency.Answer{}, errRefused
			}
			return ok("1"), record(t.Context(), tx, "k")
		})
		if !errors.Is(err, errRefused) || isLost(err) || runs != 2 || f.rows(t) != 0 {
			t.Errorf("%v after %d runs, %d keys", err, runs, f.rows(t))
		}
		f, u := newUnsure(t, d, lost)
		other := r
		other.Body = []byte("other")
		u.between = func() {
			_, err := f.Run(t.Context(), other, unit(t.Context(), "other", ok("2")))
			must(t, err)
		}
		_, err = f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
		problem(t, err, idempotency.Mismatch)
		if isLost(err) || f.units(t, "k") != 0 || f.units(t, "other") != 1 {
			t.Errorf("%v, %d units, %d of the other", err, f.units(t, "k"), f.units(t, "other"))
		}
	})
}

// When another's repeat came in between, it is the replay, not this request.
func TestUnknownCommitIsNotAReplay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f, u := newUnsure(t, d, landed)
		r := request(idempotency.CreditMovement(day), "k", "{}")
		u.between = func() {
			again, err := f.Run(t.Context(), r, never(t))
			if err != nil || !again.Replayed {
				t.Errorf("%+v, %v", again, err)
			}
		}
		if result, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1"))); err != nil || result.Replayed {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// A leased claim knows itself again: there is one owner, of one epoch, and it
// can finish.
func TestUnknownClaim(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		for name, outcomes := range map[string][]outcome{"lost": {lost}, "landed": {landed}, "landed twice": {landed, landed}} {
			f, _ := newUnsure(t, d, outcomes...)
			r := request(idempotency.CreditMovement(day), "k", "{}")
			c := f.claim(t, r, idempotency.Fresh)
			if c.Owner.Epoch != 1 || c.Owner.Token == [16]byte{} || !c.Owner.ExpiresAt.Equal(f.clock.now().Add(lease)) {
				t.Errorf("%s: %+v", name, c)
			}
			f.claim(t, r, idempotency.Busy)
			must(t, f.Complete(t.Context(), r, c.Owner, ok("1")))
			f.claim(t, r, idempotency.Repeated)
		}
	})
}
