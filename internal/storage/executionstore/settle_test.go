package executionstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/model"
)

// used is a model call that has used tokens.
func used(input, output int64) *step.Call {
	return &step.Call{Kind: "model", Model: "m", Usage: model.Usage{Input: input, Output: output}}
}

func refused(call *step.Call) error {
	return &step.Error{Code: api.CodeModelError, Message: "no", Call: call}
}

// hangs answers when its context ends, with what is known then.
func hangs(call *step.Call) answer {
	return func(ctx context.Context, _ *step.Run, _ string) (step.Result, error) {
		<-ctx.Done()
		return step.Result{}, &step.Error{Code: api.CodeModelError, Message: "cut", Outcome: step.Unknown, Call: call, Err: context.Cause(ctx)}
	}
}

// only has the callee answer a call of one name in its own way.
func only(name string, one answer) answer {
	return func(ctx context.Context, r *step.Run, called string) (step.Result, error) {
		if called == name {
			return one(ctx, r, called)
		}
		return step.Result{Value: map[string]any{"output": called}, Call: used(0, 0)}, nil
	}
}

func says(result step.Result, err error) answer {
	return func(context.Context, *step.Run, string) (step.Result, error) { return result, err }
}

// The flow of these tests: 1 a run, 0.1 and 0.2 a step, 1 a thousand tokens,
// and never more than 3.3.
const two = `
steps:
  - {id: a, type: model, name: a, retries: 1}
  - {id: b, type: model, name: b%s}
limits: {timeout: "%s", budget: "2"}
price: {per_run: "1", per_step: {a: "0.1", b: "0.2"}, tokens: {"*": {input: "1", output: "2"}}}
`

// Every way in which an execution ends settles its hold once: what was used is
// charged, never more than was held, and the rest is let go.
func TestSettled(t *testing.T) {
	value := map[string]any{"output": "x"}
	tests := map[string]struct {
		answer  answer
		b       string // further members of step b
		timeout string
		status  execution.Status
		code    api.Code
		charged string
		// unbilled is 0 if it is empty.
		unbilled string
	}{
		"success": {says(step.Result{Value: value, Call: used(100, 50)}, nil), "", "60s", execution.Succeeded, "", "1.7", ""},
		"beyond":  {says(step.Result{Value: value, Call: used(1000, 1000)}, nil), "", "60s", execution.Succeeded, "", "3.3", "4"},
		"absurd": {
			says(step.Result{Value: value, Call: used(1<<62, -5)}, nil), "", "60s", execution.Succeeded, "", "3.3", "999999999996.699999",
		},
		"first fails":     {only("a", says(step.Result{}, refused(used(10, 0)))), "", "60s", execution.Failed, api.CodeModelError, "1.01", ""},
		"second fails":    {only("b", says(step.Result{}, refused(nil))), "", "60s", execution.Failed, api.CodeModelError, "1.1", ""},
		"strange error":   {only("b", says(step.Result{}, errors.New("?"))), "", "60s", execution.Failed, api.CodeStepFailed, "1.1", ""},
		"step timeout":    {only("b", hangs(used(10, 0))), `, timeout: "20ms"`, "60s", execution.Failed, api.CodeOutcomeUnknown, "1.11", ""},
		"timeout":         {only("b", hangs(used(10, 0))), "", "300ms", execution.Failed, api.CodeExecutionTimeout, "1.11", ""},
		"cut stream":      {only("b", says(step.Result{}, &step.Error{Code: api.CodeModelError, Outcome: step.Unknown, Call: used(0, 7)})), "", "60s", execution.Failed, api.CodeOutcomeUnknown, "1.114", ""},
		"panic":           {only("b", func(context.Context, *step.Run, string) (step.Result, error) { panic("x") }), "", "60s", execution.Failed, api.CodeOutcomeUnknown, "1.1", ""},
		"no output":       {only("b", says(step.Result{}, nil)), "", "60s", execution.Succeeded, "", "1.3", ""},
		"condition fails": {nil, `, if: "${1}"`, "60s", execution.Failed, api.CodeStepFailed, "1.1", ""},
		"skipped":         {nil, `, if: "${false}"`, "60s", execution.Succeeded, "", "1.1", ""},
		"text no store keeps": {
			only("b", says(step.Result{}, &step.Error{Code: api.CodeModelError, Message: "a\x00\xff", Call: &step.Call{Model: "\x00", ProviderRequestID: "\xff"}})),
			"", "60s", execution.Failed, api.CodeModelError, "1.1", "",
		},
	}
	onBoth(t, func(t *testing.T, b *bench) {
		s := b.serve(t, 1)
		for name, test := range tests {
			flow := b.next(t, fmt.Sprintf(two, test.b, test.timeout), test.answer)
			x := s.must(t, b, order{key: flow, flow: flow, customer: flow})
			if x.Status != test.status || x.Charged.String() != test.charged || x.Unbilled.String() != orZero(test.unbilled) {
				t.Errorf("%s: %s: charged %s, unbilled %s, %v", name, x.Status, x.Charged, x.Unbilled, x.Failure)
			}
			if x.Failure != nil && x.Failure.Code != test.code {
				t.Errorf("%s: %+v", name, x.Failure)
			}
			b.settled(t)
			if b.count(t, `movements m JOIN holds h ON h.id = m.hold WHERE h.execution_id = $1`, x.ID) != 1 {
				t.Error("there is not one capture")
			}
		}
	})
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

// A step that panics without calling anything fails as well, wherever it is.
func TestPanicWithin(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "f", `
steps:
  - {id: each, type: parallel, over: [1, 2, 3], steps: [{id: a, type: http, name: "${item}"}]}
price: {per_run: "1"}
`)
		b.topup(t, "ada", "10")
		b.callee.answer = only("2", func(context.Context, *step.Run, string) (step.Result, error) { panic("x") })
		s := b.serve(t, 1)
		x := s.must(t, b, order{key: "k", flow: "f", customer: "ada"})
		if x.Status != execution.Failed || x.Failure.Code != api.CodeOutcomeUnknown || x.Charged.String() != "1" {
			t.Errorf("%+v", x)
		}
		b.settled(t)
	})
}

// A provider that refuses a hundred times leaves nothing held.
func TestRefusingProvider(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "f", fmt.Sprintf(two, "", "60s"))
		b.topup(t, "ada", "400")
		b.callee.answer = says(step.Result{}, refused(&step.Call{Kind: "model", Model: "m", Status: 402}))
		s := b.serve(t, 8)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				done, err := s.execute(t, b, order{key: fmt.Sprint(i), flow: "f", customer: "ada"})
				if err != nil || done.Execution.Status != execution.Failed || done.Execution.Charged.String() != "1" {
					t.Errorf("%+v %v", done, err)
				}
			})
		}
		all.Wait()
		if got := b.balance(t, "ada"); got != "300 held 0" || b.callee.total() != 100 {
			t.Errorf("%s, %d calls", got, b.callee.total())
		}
		b.settled(t)
	})
}

// Cancelling ends an execution wherever it is, once, and charges what is known.
func TestCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for slots, charged := range []string{"0", "1.11"} { // queued and running
			flow := b.next(t, fmt.Sprintf(two, "", "60s"), only("b", hangs(used(10, 0))))
			s := b.serve(t, slots)
			o := order{key: flow, flow: flow, customer: flow, mode: execution.Async}
			x := s.must(t, b, o)
			for range 2 * slots {
				<-b.callee.called
			}
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					if x, err := s.Cancel(t.Context(), b.project, x.ID); err != nil || x.Status != execution.Cancelled {
						t.Errorf("%+v %v", x, err)
					}
				})
			}
			all.Wait()
			x = s.ended(t, b, x.ID)
			if x.Status != execution.Cancelled || x.Charged.String() != charged || x.Failure != nil {
				t.Errorf("%s charged %s", x.Status, x.Charged)
			}
			again, err := s.execute(t, b, o)
			if err != nil || !again.Replayed || again.Execution.Status != execution.Cancelled {
				t.Errorf("%+v %v", again, err)
			}
			b.settled(t)
			s.stop()
		}
	})
}

// A wish to cancel that comes while an execution passes from one server to the
// next is not forgotten.
func TestCancelBetweenServers(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "f", fmt.Sprintf(two, "", "60s"))
		b.topup(t, "ada", "10")
		b.callee.answer, b.callee.called = only("b", hangs(nil)), make(chan string, 10)
		g := &gate{}
		s := b.serve(t, 1, g.guard)
		x := s.must(t, b, order{key: "k", flow: "f", customer: "ada", mode: execution.Async})
		<-b.callee.called
		<-b.callee.called
		g.die()
		s.cut()
		other := b.serve(t, 0)
		if _, err := other.Cancel(t.Context(), b.project, x.ID); err != nil {
			t.Fatal(err)
		}
		b.expire(t)
		last := b.serve(t, 1)
		if x := last.ended(t, b, x.ID); x.Status != execution.Cancelled || x.Charged.String() != "1.1" {
			t.Errorf("%+v", x)
		}
		if n := b.callee.total(); n != 2 {
			t.Errorf("%d calls", n)
		}
		b.settled(t)
	})
}

// Cancelling while an execution ends by itself gives one end and one
// settlement.
func TestCancelRacesWithTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "f", priced)
		b.topup(t, "ada", "1000")
		s := b.serve(t, 4)
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				done, err := s.execute(t, b, order{key: fmt.Sprint(i), flow: "f", customer: "ada", mode: execution.Async})
				if err != nil {
					t.Error(err)
					return
				}
				for range 2 {
					all.Go(func() {
						if _, err := s.Cancel(t.Context(), b.project, done.Execution.ID); err != nil {
							t.Error(err)
						}
					})
				}
				first, second := s.ended(t, b, done.Execution.ID), s.ended(t, b, done.Execution.ID)
				if first.Status != second.Status || first.Charged != second.Charged {
					t.Errorf("%+v then %+v", first, second)
				}
			})
		}
		all.Wait()
		b.settled(t)
	})
}

// A store that is away for a while, or does not say whether it has written,
// changes nothing about how an execution ends.
func TestStoreIsAwayForAWhile(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, what := range []harm{refuse, before, after} {
			flow := b.next(t, fmt.Sprintf(two, "", "60s"), nil)
			g := &gate{harms: func(n int) harm { // each op is harmed once, and the third three times
				if n%2 == 1 || n > 4 && n < 8 {
					return what
				}
				return none
			}}
			s := b.serve(t, 1, g.guard)
			o := order{key: flow, flow: flow, customer: flow}
			x := s.must(t, b, o)
			if x.Status != execution.Succeeded || x.Charged.String() != "1.3" {
				t.Errorf("%+v", x)
			}
			if n := b.callee.total(); n != 2 {
				t.Errorf("%d calls", n)
			}
			if again := s.must(t, b, o); again.Status != x.Status || again.Charged != x.Charged {
				t.Errorf("%+v, then %+v", x, again)
			}
			b.settled(t)
			s.stop()
		}
	})
}

// What a hold pins does not expire while it is held: it is charged, and only
// the rest goes.
func TestGrantExpiresUnderAHold(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "f", fmt.Sprintf(two, "", "60s"))
		b.grant(t, "ada", "10", b.now().Add(time.Hour))
		goOn := make(chan struct{})
		b.callee.answer, b.callee.called = only("b", func(context.Context, *step.Run, string) (step.Result, error) {
			<-goOn
			return step.Result{Value: map[string]any{}, Call: used(0, 0)}, nil
		}), make(chan string, 2)
		s := b.serve(t, 1)
		x := s.must(t, b, order{key: "k", flow: "f", customer: "ada", mode: execution.Async})
		<-b.callee.called
		<-b.callee.called
		b.ahead.Store(int64(time.Hour))
		if _, err := b.credits.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.balance(t, "ada"); got != "3.3 held 3.3" {
			t.Error(got)
		}
		b.audit(t)
		close(goOn)
		if x := s.ended(t, b, x.ID); x.Charged.String() != "1.3" || x.Unbilled != 0 {
			t.Errorf("%+v", x)
		}
		if got := b.balance(t, "ada"); got != "0 held 0" {
			t.Error(got)
		}
		b.settled(t)
	})
}
