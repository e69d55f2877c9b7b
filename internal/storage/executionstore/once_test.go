package executionstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// Fifty clients send one new key at once, with a balance for one run: there is
// one execution and one call, all hear the same, and nobody hears that there is
// not enough.
func TestFiftyFirstTimes(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "hello", priced)
		b.topup(t, "ada", "2.5")
		s := b.serve(t, 4)
		for _, mode := range []execution.Mode{execution.Sync, execution.Async} {
			var first atomic.Int64
			ids := make([]string, 50)
			var all sync.WaitGroup
			for i := range ids {
				all.Go(func() {
					done, err := s.execute(t, b, order{key: "k " + string(mode), flow: "hello", customer: "ada", mode: mode})
					if err != nil {
						t.Error(err)
						return
					}
					if !done.Replayed {
						first.Add(1)
					}
					if mode == execution.Sync && done.Execution.Status != execution.Succeeded {
						t.Errorf("%s is %s", done.Execution.ID, done.Execution.Status)
					}
					ids[i] = done.Execution.ID
				})
			}
			all.Wait()
			if n := len(slices.Compact(ids)); n != 1 || first.Load() != 1 {
				t.Errorf("%s: %d runs of ids, %d first answers", mode, n, first.Load())
			}
			if x := s.ended(t, b, ids[0]); x.Status != execution.Succeeded || x.Charged.String() != "2.5" {
				t.Errorf("%+v", x)
			}
			b.topup(t, "ada", "2.5")
		}
		if n := b.callee.total(); n != 2 {
			t.Errorf("%d calls", n)
		}
		if got := b.balance(t, "ada"); got != "2.5 held 0" {
			t.Error(got)
		}
		b.settled(t)
	})
}

// Fifty keys and a balance for ten runs: ten run, and the keys of the others
// are free and run after a topup.
func TestTenOfFifty(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "hello", priced)
		b.topup(t, "ada", "25")
		s := b.serve(t, 8)
		round := func() (refused []int) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					_, err := s.execute(t, b, order{key: fmt.Sprint(i), flow: "hello", customer: "ada"})
					mu.Lock()
					defer mu.Unlock()
					switch {
					case fault.CodeOf(err) == api.CodeInsufficientCredits:
						refused = append(refused, i)
					case err != nil:
						t.Error(err)
					}
				})
			}
			all.Wait()
			return refused
		}
		if refused := round(); len(refused) < 40 { // a hold may be in the way of one more while it is settled
			t.Errorf("%d refused", len(refused))
		}
		b.settled(t)
		if n := b.count(t, "executions"); n > 10 || n != b.callee.total() {
			t.Errorf("%d executions, %d calls", n, b.callee.total())
		}
		b.topup(t, "ada", "100")
		if refused := round(); len(refused) != 0 {
			t.Errorf("%v are refused after a topup", refused)
		}
		if n := b.callee.total(); n != 50 {
			t.Errorf("%d calls", n)
		}
		if got := b.balance(t, "ada"); got != "0 held 0" {
			t.Error(got)
		}
		b.settled(t)
	})
}

// A key names one unit of work, whatever the method: the second use of it is a
// conflict, nothing runs, and it says what the first one was.
func TestOtherWork(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "hello", priced)
		s := b.serve(t, 1)
		move := func(key string) error {
			_, err := b.credits.Move(t.Context(), credit.MoveParams{
				ProjectID: b.project, Customer: "ada", Kind: credit.Topup, Key: key, Body: []byte(`{"credit_type":"main","amount":"5"}`),
				Decode: func() (credit.Move, error) {
					return credit.Move{CreditType: "main", Amount: 5_000_000, Grant: credit.Grant{Priority: credit.DefaultPriority}}, nil
				},
				Render: func(*credit.Movement, credit.Balance) ([]byte, error) { return []byte("{}"), nil },
			})
			return err
		}
		if err := move("topup"); err != nil {
			t.Fatal(err)
		}
		x := s.must(t, b, order{key: "run", flow: "hello", customer: "ada"})
		conflict := func(err error, kind, id string, differs ...string) *idempotency.Error {
			t.Helper()
			e, ok := errors.AsType[*idempotency.Error](err)
			if !ok || e.Problem != idempotency.Mismatch || e.Record.Resource.Kind != kind || id != "" && e.Record.Resource.ID != id {
				t.Fatalf("%v: %+v", err, e)
			}
			for _, one := range differs {
				if !slices.Contains(e.Differs, one) {
					t.Errorf("%q is not in %q", one, e.Differs)
				}
			}
			return e
		}
		_, err := s.execute(t, b, order{key: "topup", flow: "hello", customer: "ada"})
		_ = conflict(err, "topup", "")
		_ = conflict(move("run"), "execution", x.ID)
		for _, o := range []order{
			{key: "run", flow: "hello", customer: "ada", input: `{"a":1}`},
			{key: "run", flow: "hello", customer: "ada", mode: execution.Async},
			{key: "run", flow: "hello", customer: "bob"},
			{key: "run", flow: "no such flow", customer: "ada"},
			{key: "run", flow: "hello", customer: "ada", body: `{`},
		} {
			_, err := s.execute(t, b, o)
			_ = conflict(err, "execution", x.ID)
		}
		_, err = s.execute(t, b, order{
			key: "run", flow: "hello", customer: "ada", body: `{"customer":"ada","flow":"hello","input":{},"mode":"sync"}`,
		})
		if e := conflict(err, "execution", x.ID); !e.SameJSON {
			t.Errorf("%+v does not say that it is the same JSON", e)
		}
		if n := b.callee.total(); n != 1 {
			t.Errorf("%d calls", n)
		}
		b.settled(t)
	})
}

// What has failed stays failed, also when the flow is another now; a new key
// runs that one.
func TestFailedStaysFailed(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "f", "input: {type: object, required: [n]}\nsteps: [{id: a, type: http}]\nprice: {per_run: \"1\"}\n")
		b.topup(t, "ada", "1")
		s := b.serve(t, 1)
		o := order{key: "k", flow: "f", customer: "ada"}
		first := s.must(t, b, o)
		if first.Status != execution.Failed || first.Failure.Code != api.CodeInvalidFlowInput {
			t.Fatalf("%+v", first)
		}
		b.publish(t, "f", "steps: [{id: a, type: http}]\nprice: {per_run: \"1\"}\n")
		for range 3 {
			again, err := s.execute(t, b, o)
			if err != nil || !again.Replayed || again.Execution.ID != first.ID || again.Execution.Status != execution.Failed ||
				again.Execution.Failure.Code != api.CodeInvalidFlowInput || again.Execution.Version != 1 {
				t.Fatalf("%+v %v", again, err)
			}
		}
		if b.callee.total() != 0 || b.balance(t, "ada") != "1 held 0" {
			t.Errorf("%d calls, %s", b.callee.total(), b.balance(t, "ada"))
		}
		o.key = "another"
		if x := s.must(t, b, o); x.Status != execution.Succeeded || x.Version != 2 {
			t.Errorf("%+v", x)
		}
		b.settled(t)
	})
}

// The answer is lost: the client has left, its repeats hear that the execution
// runs, and the last of them how it has ended.
func TestLostAnswer(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "hello", priced)
		b.topup(t, "ada", "100")
		s := b.serve(t, 1)
		goOn := make(chan struct{})
		b.callee.called = make(chan string, 10)
		b.callee.answer = func(ctx context.Context, _ *step.Run, _ string) (step.Result, error) {
			select {
			case <-goOn:
				return step.Result{Value: map[string]any{"output": "x"}}, nil
			case <-ctx.Done():
				return step.Result{}, context.Cause(ctx)
			}
		}
		o := order{key: "k", flow: "hello", customer: "ada"}
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan execution.Executed)
		go func() {
			done, err := s.executeUntil(leaving, b, o)
			if err != nil {
				t.Error(err)
			}
			left <- done
		}()
		<-b.callee.called
		leave()
		if first := <-left; first.Execution.Status != execution.Running {
			t.Errorf("%+v", first)
		}
		short := time.Duration(0)
		for range 3 {
			o.wait = &short
			again, err := s.execute(t, b, o)
			if err != nil || !again.Replayed || again.Execution.Status != execution.Running {
				t.Fatalf("%+v %v", again, err)
			}
			short += time.Millisecond
		}
		o.wait = nil
		attached := make(chan execution.Executed, 5)
		for range cap(attached) {
			go func() {
				done, err := s.execute(t, b, o)
				if err != nil {
					t.Error(err)
				}
				attached <- done
			}()
		}
		close(goOn)
		for range cap(attached) {
			if done := <-attached; done.Execution.Status != execution.Succeeded || !done.Replayed {
				t.Errorf("%+v", done)
			}
		}
		if n := b.callee.total(); n != 1 {
			t.Errorf("%d calls", n)
		}
		if got := b.balance(t, "ada"); got != "97.5 held 0" {
			t.Error(got)
		}
		b.settled(t)
	})
}
