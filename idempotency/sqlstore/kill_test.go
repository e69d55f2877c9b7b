package sqlstore_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// childEnv, when set, makes the test binary do one request and die at a step
// of it.
const childEnv = "SQLSTORE_TEST_CHILD"

// order is what a child is told.
type order struct {
	Source source
	Now    time.Time
	Leased bool
	Step   string // at which it dies
}

// child does the one request. It returns only if it did not die.
func child() int {
	var o order
	if err := errors.Join(json.Unmarshal([]byte(os.Getenv(childEnv)), &o), o.work(context.Background())); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func (o *order) die(step string) {
	if step == o.Step {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		select {} // it dies here
	}
}

func (o *order) work(ctx context.Context) error {
	db, err := sql.Open(o.Source.Driver, o.Source.URL)
	if err != nil {
		return err
	}
	s, err := sqlstore.New(sqlstore.Options{DB: db, Dialect: o.Source.Dialect, Clock: func() time.Time { return o.Now }})
	if err != nil {
		return err
	}
	s.SetStep(o.die)
	r := killed()
	if !o.Leased {
		_, err := s.Run(ctx, r, unit(ctx, "effect", ok("1")))
		o.die("committed")
		return err
	}
	c, err := s.Claim(ctx, r, lease)
	if err != nil {
		return err
	}
	return leasedWork(ctx, s, db, c, o.die)
}

func killed() idempotency.Request { return request(idempotency.CreditMovement(day), "k", "{}") }

// leasedWork is a handler that has no transaction with the key: it looks at
// what an owner before it has done before doing it again.
func leasedWork(ctx context.Context, s *sqlstore.Store, db *sql.DB, c idempotency.Claim, step func(string)) error {
	r := killed()
	if c.Record.Resource.ID == "" {
		_, err := db.ExecContext(ctx, `INSERT INTO work (unit) SELECT 'effect' WHERE NOT EXISTS (SELECT 1 FROM work)`)
		if err != nil {
			return err
		}
		step("effect")
		if err := s.Made(ctx, r.Ref(), c.Owner, ok("1").Resource); err != nil {
			return err
		}
		step("made")
	}
	return s.Complete(ctx, r, c.Owner, ok("1"))
}

// runChild runs a child until it has killed itself.
func runChild(t *testing.T, o order) {
	t.Helper()
	text, err := json.Marshal(o)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("the child did not die at %q: %v\n%s", o.Step, err, out)
	}
}

// A process that is killed at any step leaves no work without its key and no
// key without its work; the repeat gets the right answer.
func TestKilledInRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		for step, done := range map[string]bool{"claimed": false, "worked": false, "completed": false, "committed": true} {
			f := newFixture(t, d)
			runChild(t, order{Source: f.source, Now: f.clock.now(), Step: step})
			for repeat := range 2 {
				result, err := f.Run(t.Context(), killed(), unit(t.Context(), "effect", ok("1")))
				if err != nil || result.Replayed != (done || repeat > 0) || string(result.Answer.Body) != "1" {
					t.Errorf("%s: %+v, %v", step, result, err)
				}
				if n := f.units(t, "effect"); n != 1 {
					t.Errorf("%s: %d units of work", step, n)
				}
			}
		}
	})
}

func TestKilledWithALease(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		for step, c := range map[string]struct {
			effects  int
			resource string
			recorded bool
		}{
			"leased": {0, "", false}, "effect": {1, "", false}, "made": {1, "m-1", false},
			"answered": {1, "m-1", false}, "recorded": {1, "m-1", true},
		} {
			f := newFixture(t, d)
			runChild(t, order{Source: f.source, Now: f.clock.now(), Leased: true, Step: step})
			if n := f.units(t, "effect"); n != c.effects {
				t.Errorf("%s: %d effects", step, n)
			}
			if !c.recorded {
				f.clock.advance(lease - time.Microsecond)
				f.claim(t, killed(), idempotency.Busy)
				f.clock.advance(time.Microsecond)
				next := f.claim(t, killed(), idempotency.Fresh)
				if next.Owner.Epoch != 2 || next.Record.Resource.ID != c.resource {
					t.Errorf("%s: %+v", step, next)
				}
				must(t, leasedWork(t.Context(), f.Store, f.db, next, func(string) {}))
			}
			got := f.claim(t, killed(), idempotency.Repeated).Record
			if string(got.Answer.Body) != "1" || got.Resource.ID != "m-1" || f.units(t, "effect") != 1 {
				t.Errorf("%s: %+v, %d effects", step, got, f.units(t, "effect"))
			}
		}
	})
}
