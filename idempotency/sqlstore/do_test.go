package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

func TestRunOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.CreditMovement(day), "k", `{"a":1}`)
		want := ok("1")
		want.Header = map[string]string{"Location": "/x", "ETag": `"é"`}
		first, err := f.Run(t.Context(), r, unit(t.Context(), "k", want))
		if err != nil || first.Replayed || first.AnswerExpired || !reflect.DeepEqual(*first.Answer, want) {
			t.Fatalf("first: %+v, %v", first, err)
		}
		if first.Record.Ref != r.Ref() || first.Record.Resource != want.Resource {
			t.Errorf("the first record is %+v", first.Record)
		}
		f.clock.advance(day - 1)
		for range 2 {
			again, err := f.Run(t.Context(), r, never(t))
			must(t, err)
			judged, fresh, err := f.Judge(t.Context(), r)
			if err != nil || fresh || !again.Replayed || !reflect.DeepEqual(*again.Answer, want) {
				t.Fatalf("again: %+v, %v, %v", again, fresh, err)
			}
			if diff := cmp.Diff(again, judged, cmp.Comparer(samePrint)); diff != "" {
				t.Errorf("Judge says something else than Run: %s", diff)
			}
		}
		if n := f.units(t, "k"); n != 1 {
			t.Errorf("%d units of work", n)
		}
	})
}

func samePrint(a, b idempotency.Print) bool { return len(a.Differs(b)) == 0 }

func TestConflicts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.CreditMovement(day), "k", `{"a":1,"b":2}`)
		_, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
		must(t, err)
		spelt, method, run := r, r, request(idempotency.Execution(), "k", `{"flow":"x"}`)
		spelt.Body = []byte(`{"b": 2, "a": 1}`)
		method.Facts = []idempotency.Fact{{Name: "method", Value: "adjust"}}
		run.Facts = []idempotency.Fact{{Name: "method", Value: "execute"}}
		for _, c := range []struct {
			name    string
			r       idempotency.Request
			differs []string
			same    bool
		}{
			{"spelling", spelt, []string{"body"}, true},
			{"method", method, []string{"method"}, false},
			{"execution", run, []string{"method", "body"}, false},
		} {
			_, runErr := f.Run(t.Context(), c.r, never(t))
			_, fresh, judgeErr := f.Judge(t.Context(), c.r)
			for _, err := range []error{runErr, judgeErr} {
				e := problem(t, err, idempotency.Mismatch)
				if fresh || e.SameJSON != c.same || !reflect.DeepEqual(e.Differs, c.differs) || e.Record.Resource.ID != "m-1" {
					t.Errorf("%s: %+v", c.name, e)
				}
			}
		}
	})
}

var errRefused = errors.New("insufficient")

// A refusal leaves no row and undoes the work, whichever way it is said; the
// caller's transaction goes on, and the key is free for any body.
func TestRefusalsLeaveNothing(t *testing.T) {
	t.Parallel()
	answers := map[string]struct {
		policy idempotency.Policy
		answer idempotency.Answer
		err    error
	}{
		"error":       {idempotency.IETF(day), ok("1"), errRefused},
		"status":      {idempotency.CreditMovement(day), idempotency.Answer{Status: 402}, nil},
		"no resource": {idempotency.Execution(), idempotency.Answer{Status: 200}, nil},
	}
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		for name, c := range answers {
			r := request(c.policy, name, `{}`)
			tx := f.begin(t, nil)
			must(t, record(t.Context(), tx, name+" before"))
			result, err := f.Do(t.Context(), tx, r, func(tx *sql.Tx) (idempotency.Answer, error) {
				return c.answer, errors.Join(c.err, record(t.Context(), tx, name))
			})
			if !errors.Is(err, c.err) || c.err == nil && (result.Replayed || result.Answer.Status != c.answer.Status) {
				t.Fatalf("%s: %+v, %v", name, result, err)
			}
			must(t, record(t.Context(), tx, name+" after"))
			commit(t, tx)
			if n := f.rows(t); n != 0 {
				t.Errorf("%s: %d keys", name, n)
			}
			for unit, want := range map[string]int{name: 0, name + " before": 1, name + " after": 1} {
				if n := f.units(t, unit); n != want {
					t.Errorf("%s: %d rows, want %d", unit, n, want)
				}
			}
			r.Body = []byte("other")
			if _, fresh, err := f.Judge(t.Context(), r); !fresh || err != nil {
				t.Errorf("%s: the key is not free: %v", name, err)
			}
		}
	})
}

func record(ctx context.Context, tx *sql.Tx, name string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO work (unit) VALUES ($1)`, name)
	return err
}

// After a statement that the database refuses, and after a panic, the caller's
// transaction goes on, too.
func TestBrokenWorkLeavesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		r := request(idempotency.CreditMovement(day), "k", `{}`)
		tx := f.begin(t, nil)
		_, err := f.Do(t.Context(), tx, r, func(tx *sql.Tx) (idempotency.Answer, error) {
			must(t, record(t.Context(), tx, "broken"))
			_, err := tx.ExecContext(t.Context(), `INSERT INTO nowhere VALUES (1)`)
			return idempotency.Answer{}, err
		})
		if err == nil {
			t.Error("the broken statement was not noticed")
		}
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic was lost")
				}
			}()
			_, err := f.Do(t.Context(), tx, r, func(tx *sql.Tx) (idempotency.Answer, error) {
				must(t, record(t.Context(), tx, "broken"))
				panic("boom")
			})
			t.Errorf("returned %v", err)
		}()
		_, err = f.Do(t.Context(), tx, r, unit(t.Context(), "k", ok("1")))
		must(t, err)
		commit(t, tx)
		if f.units(t, "broken") != 0 || f.units(t, "k") != 1 || f.rows(t) != 1 {
			t.Errorf("broken %d, k %d, %d keys", f.units(t, "broken"), f.units(t, "k"), f.rows(t))
		}
	})
}

// Work that hides a refused statement is not committed.
func TestWorkThatHidesAnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL)
	r := request(idempotency.CreditMovement(day), "k", `{}`)
	_, err := f.Run(t.Context(), r, func(tx *sql.Tx) (idempotency.Answer, error) {
		if _, err := tx.ExecContext(t.Context(), `INSERT INTO nowhere VALUES (1)`); err == nil {
			t.Error("inserted into nowhere")
		}
		return ok("1"), nil
	})
	if err == nil || f.rows(t) != 0 {
		t.Errorf("%v, %d keys", err, f.rows(t))
	}
}

// Several units of work in one transaction: one refusal undoes only itself.
func TestSeveralUnitsInOneTransaction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		p := idempotency.CreditMovement(day)
		tx := f.begin(t, nil)
		inner := func(tx *sql.Tx) (idempotency.Answer, error) {
			if _, err := f.Do(t.Context(), tx, request(p, "inner", `{}`), unit(t.Context(), "inner", ok("1"))); err != nil {
				return idempotency.Answer{}, err
			}
			return ok("1"), record(t.Context(), tx, "outer")
		}
		for key, work := range map[string]sqlstore.Work{
			"outer": inner, "a": unit(t.Context(), "a", ok("1")), "b": unit(t.Context(), "b", idempotency.Answer{Status: 402}),
		} {
			_, err := f.Do(t.Context(), tx, request(p, key, `{}`), work)
			must(t, err)
		}
		again, err := f.Do(t.Context(), tx, request(p, "a", `{}`), never(t))
		if err != nil || !again.Replayed {
			t.Errorf("a repeat in the same transaction: %+v, %v", again, err)
		}
		commit(t, tx)
		for unit, want := range map[string]int{"outer": 1, "inner": 1, "a": 1, "b": 0} {
			if n := f.units(t, unit); n != want {
				t.Errorf("%s: %d rows, want %d", unit, n, want)
			}
		}
	})
}

// A context that ends in the midst of the work leaves nothing behind, and the
// same pool goes on.
func TestCancelledWork(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		f.db.SetMaxOpenConns(1)
		r := request(idempotency.CreditMovement(day), "k", `{}`)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := f.Run(ctx, r, func(tx *sql.Tx) (idempotency.Answer, error) {
				must(t, record(ctx, tx, "cancelled"))
				cancel()
				return ok("1"), record(ctx, tx, "cancelled")
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		result, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
		if err != nil || result.Replayed || f.units(t, "cancelled") != 0 || f.units(t, "k") != 1 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// At REPEATABLE READ a claim that loses is an error which says that the
// transaction must be run again, never a second unit of work.
func TestRepeatableRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqlstore.PostgreSQL)
	r := request(idempotency.CreditMovement(day), "k", `{}`)
	o := &sql.TxOptions{Isolation: sql.LevelRepeatableRead}
	tx := f.begin(t, o)
	must(t, record(t.Context(), tx, "snapshot"))
	_, err := f.Run(t.Context(), r, unit(t.Context(), "k", ok("1")))
	must(t, err)
	_, err = f.Do(t.Context(), tx, r, never(t))
	if state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); !ok || state.SQLState() != "40001" {
		t.Fatalf("got %v, want a serialization failure", err)
	}
	must(t, tx.Rollback())
	again, err := f.Do(t.Context(), f.begin(t, o), r, never(t))
	if diff := cmp.Diff(ok("1"), *again.Answer, cmpopts.EquateEmpty()); err != nil || !again.Replayed || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
