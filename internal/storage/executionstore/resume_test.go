package executionstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// nested has one of everything: calls, blocks within blocks, a wait, a step
// that is skipped, and %s for what becomes of calls that were interrupted.
const nested = `
steps:
  - {id: first, type: http, name: one%[1]s}
  - {id: never, type: http, name: never, if: "${false}"%[1]s}
  - id: pick
    type: branch
    cases:
      - when: "${steps.first.output == \"one\"}"
        steps:
          - id: each
            type: parallel
            over: [10, 20, 30]
            concurrency: 2
            steps:
              - {id: inner, type: http, name: "${item}"%[1]s}
              - id: again
                type: parallel
                over: ["x", "y"]
                steps: [{id: deep, type: http, name: "${steps.inner.output}${item}"%[1]s}]
                output: "${steps.deep.output}"
            output: "${steps.again.output}"
        output: "${steps.each.output}"
  - {id: nap, type: wait, for: "1ms"}
  - {id: last, type: http, name: done%[1]s}
output: ["${steps.pick.output}", "${steps.last.output}"]
price: {per_run: "1", per_step: {first: "0.1", deep: "0.01", inner: "0.001"}}
`

const (
	nestedOutput  = `[[["10x","10y"],["20x","20y"],["30x","30y"]],"done"]`
	nestedCalls   = 1 + 3 + 6 + 1
	nestedCharged = "1.163"
)

// kill runs the flow on a server that dies at its n-th write, before or after
// it has landed, and then on another. It says whether the first one died.
func kill(t *testing.T, b *bench, onInterrupt string, at int, what harm) bool {
	t.Helper()
	slug := b.next(t, fmt.Sprintf(nested, onInterrupt), nil)
	b.topup(t, slug, "1000")
	g := &gate{}
	g.harms = func(n int) harm {
		if n < at {
			return none
		}
		if what == before || n > at {
			g.dead = true // its lock is held
		}
		if n == at {
			close(g.dies)
		}
		return what
	}
	s := b.serve(t, 1, g.guard)
	o := order{key: slug, flow: slug, customer: slug, mode: execution.Async}
	x := s.must(t, b, o)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Follow(t.Context(), b.project, x.ID, func(execution.Event) error { return nil }) // until its end, or the server's
	}()
	died := false
	select {
	case <-g.dies:
		died = true
		g.mu.Lock()
		g.dead = true
		g.mu.Unlock()
	case <-ended:
	}
	other := b.bury(t, s, 1)
	x = other.ended(t, b, x.ID)
	check(t, b, &x, onInterrupt != "")
	again, err := other.execute(t, b, o)
	if err != nil || !again.Replayed || again.Execution.Status != x.Status {
		t.Errorf("the key says %+v %v", again, err)
	}
	b.settled(t)
	other.stop()
	return died
}

// check says whether an execution that was interrupted once has ended as it may.
func check(t *testing.T, b *bench, x *execution.Execution, again bool) {
	t.Helper()
	repeated := 0
	for key, n := range b.callee.counts {
		if !strings.HasPrefix(key, x.ID+":") || n > 2 || n > 1 && !again {
			t.Errorf("%s was called %d times", key, n)
		}
		repeated += n - 1
	}
	switch {
	case x.Status == execution.Succeeded:
		if string(x.Output) != nestedOutput || x.Charged.String() != nestedCharged || len(b.callee.counts) != nestedCalls {
			t.Errorf("%s, charged %s, %d calls", x.Output, x.Charged, len(b.callee.counts))
		}
	case again || x.Failure == nil || x.Failure.Code != api.CodeOutcomeUnknown || x.Charged < perRun:
		t.Errorf("%s: %+v, charged %s", x.Status, x.Failure, x.Charged)
	}
	if repeated > 4 { // as many as may run at once
		t.Errorf("%d calls were repeated", repeated)
	}
}

// A process dies at any write of a run, before it has landed or after: the next
// one goes on from the journal. No call is made twice unless the flow says that
// it may; an execution whose call was interrupted fails, and all others end as
// if nothing had happened.
func TestKilledBetweenSteps(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		stride, from := 3, 1
		if b.engine.lease > 0 {
			stride = 5 // each costs more here
		}
		for _, onInterrupt := range []string{"", ", on_interrupt: retry"} {
			for _, what := range []harm{before, after} {
				at := from
				for kill(t, b, onInterrupt, at, what) {
					at += stride
				}
				if at < 8 {
					t.Errorf("the run has %d writes", at)
				}
				from++
			}
		}
	})
}

// What is known of a step does not change: one that has failed does not run
// again after a restart, and one that has certainly failed and is to be repeated
// was not interrupted.
func TestRestartBetweenAttempts(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, "steps: [{id: a, type: http, retries: 2}]\nprice: {per_run: \"1\"}\n", says(step.Result{}, &step.Error{
			Code: api.CodeStepFailed, Message: "busy", Retryable: true, After: time.Hour,
		}))
		g := &gate{}
		s := b.serve(t, 1, g.guard)
		x := s.must(t, b, order{key: slug, flow: slug, customer: slug, mode: execution.Async})
		<-b.callee.called
		eventually(t, "the answer is journalled", func() bool { return b.count(t, `execution_calls WHERE status = 'failed'`) > 0 })
		g.die()
		called := b.callee.say(nil)
		other := b.bury(t, s, 1)
		if x := other.ended(t, b, x.ID); x.Status != execution.Succeeded {
			t.Errorf("%+v", x)
		}
		if key := <-called; key != x.ID+":a" || b.callee.total() != 1 {
			t.Errorf("%s, %d calls", key, b.callee.total())
		}
		tr, err := other.Trace(t.Context(), b.project, x.ID)
		if err != nil || len(tr.Calls) != 2 || tr.Calls[0].DerivedKey != tr.Calls[1].DerivedKey || tr.Calls[1].Attempt != 2 {
			t.Errorf("%+v %v", tr.Calls, err)
		}
		b.settled(t)
	})
}

// A wait goes on from when it began, on whatever server.
func TestWaitGoesOn(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, "steps:\n  - {id: nap, type: wait, for: 2h}\n  - {id: a, type: http}\nlimits: {timeout: 24h}\n", nil)
		now := time.Now()
		g := &gate{}
		s := b.serve(t, 1, g.guard, func(p *execution.Params) { p.Clock = func() time.Time { return now } })
		x := s.must(t, b, order{key: slug, flow: slug, mode: execution.Async})
		eventually(t, "the wait has begun", func() bool { return b.count(t, `execution_steps WHERE state = 'started'`) > 0 })
		g.die()
		s.cut()
		b.expire(t)
		later := func(p *execution.Params) { p.Clock = func() time.Time { return now.Add(2*time.Hour + time.Second) } }
		other := b.serve(t, 1, later)
		if x := other.ended(t, b, x.ID); x.Status != execution.Succeeded || b.callee.total() != 1 {
			t.Errorf("%+v", x)
		}
	})
}

// What was cut when a server had to stop is unknown; the next start says so, or
// calls again with the same derived key if the flow allows it.
func TestHardStop(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		for _, onInterrupt := range []string{"", ", on_interrupt: retry"} {
			slug := b.next(t, "steps: [{id: a, type: http"+onInterrupt+"}]\nprice: {per_run: \"1\"}\n", hangs(nil))
			s := b.serve(t, 1)
			x := s.must(t, b, order{key: slug, flow: slug, customer: slug, mode: execution.Async})
			key := <-b.callee.called
			s.cut()
			if got := b.count(t, `executions WHERE id = $1 AND status = 'queued' AND epoch = 1`, x.ID); got != 1 {
				t.Error("it is not queued again")
			}
			called := b.callee.say(func(context.Context, *step.Run, string) (step.Result, error) {
				return step.Result{Value: map[string]any{}}, nil
			})
			other := b.serve(t, 1)
			x = other.ended(t, b, x.ID)
			switch {
			case onInterrupt == "" && (x.Failure == nil || x.Failure.Code != api.CodeOutcomeUnknown || len(called) != 0):
				t.Errorf("%+v, %d calls", x, len(called))
			case onInterrupt != "" && (x.Status != execution.Succeeded || <-called != key):
				t.Errorf("%+v", x)
			}
			if x.Charged.String() != "1" {
				t.Errorf("charged %s", x.Charged)
			}
			b.settled(t)
			other.stop()
		}
	})
}
