package executionstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// held answers once it is let go, and says whether it was cut meanwhile.
func held(goOn <-chan struct{}) answer {
	return func(ctx context.Context, _ *step.Run, name string) (step.Result, error) {
		<-goOn
		if err := ctx.Err(); err != nil {
			return step.Result{}, &step.Error{Code: api.CodeStepFailed, Message: "cut", Outcome: step.Unknown, Err: err}
		}
		return step.Result{Value: map[string]any{"output": name}}, nil
	}
}

const list = `
steps:
  - {id: each, type: parallel, over: [1, 2, 3], concurrency: 2, steps: [{id: a, type: http, name: "${item}"}], output: "${steps.a.output}"}
  - {id: b, type: http, name: b}
output: "${steps.each.output}"
price: {per_run: "1", per_step: {a: "0.01"}}
`

// A server that drains begins no step and cuts none: what is under way is
// finished and journalled, whoever waits hears in time that it is queued again,
// and the next server does the rest, and nothing twice.
func TestDrain(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		goOn := make(chan struct{})
		slug := b.next(t, list, held(goOn))
		s := b.serve(t, 1)
		waits := make(chan execution.Execution, 2)
		for _, key := range []string{"runs", "waits"} {
			go func() {
				done, err := s.execute(t, b, order{key: key, flow: slug, customer: slug})
				if err != nil {
					t.Error(err)
				}
				waits <- done.Execution
			}()
			if key == "runs" {
				<-b.callee.called
				<-b.callee.called
			}
		}
		eventually(t, "the second one is made", func() bool { return b.count(t, "executions") == 2 })
		s.engine.Drain()
		if x := <-waits; x.Key != "waits" || x.Status != execution.Queued {
			t.Errorf("%+v", x)
		}
		close(goOn)
		if x := <-waits; x.Status != execution.Queued {
			t.Errorf("%+v", x)
		}
		s.stop()
		if n := b.count(t, `executions WHERE status = 'queued' AND epoch = 1 AND owner IS NULL`); n != 1 {
			t.Error("the epoch is not kept")
		}
		if n := b.count(t, `execution_steps WHERE state = 'finished'`); n != 2 || b.callee.total() != 2 {
			t.Errorf("%d steps are finished, %d calls", n, b.callee.total())
		}
		if done, err := s.execute(t, b, order{key: "after", flow: slug, customer: slug}); err != nil || done.Execution.Status != execution.Queued {
			t.Errorf("%+v %v", done, err)
		}
		other := b.serve(t, 4)
		for _, key := range []string{"runs", "waits", "after"} {
			x := other.must(t, b, order{key: key, flow: slug, customer: slug})
			if x.Status != execution.Succeeded || string(x.Output) != `["1","2","3"]` || x.Charged.String() != "1.03" {
				t.Errorf("%+v", x)
			}
		}
		for key, n := range b.callee.counts {
			if n != 1 {
				t.Errorf("%s was called %d times", key, n)
			}
		}
		b.settled(t)
	})
}

// Nobody waits for a wait when the server stops.
func TestDrainDuringAWait(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, `
steps: [{id: each, type: parallel, over: [1, 2], steps: [{id: nap, type: wait, for: 2h}, {id: a, type: http}]}]
limits: {timeout: 3h}
`, nil)
		s := b.serve(t, 1)
		x := s.must(t, b, order{key: "k", flow: slug, mode: execution.Async})
		eventually(t, "both wait", func() bool { return b.count(t, `execution_steps WHERE step = 'nap'`) == 2 })
		begun := time.Now()
		s.stop()
		if took := time.Since(begun); took > 30*time.Second { // stop allows a minute
			t.Errorf("stopping took %v", took)
		}
		if x, err := s.Get(t.Context(), b.project, x.ID); err != nil || x.Status != execution.Queued {
			t.Errorf("%+v %v", x, err)
		}
		if n := b.count(t, `execution_steps WHERE state <> 'started'`); n != 0 {
			t.Error("a wait has ended")
		}
	})
}

// A neighbour that fails cuts no call: it would be paid for all the same. Its
// result is journalled and charged, and nothing begins after it.
func TestNeighbourFails(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		goOn := make(chan struct{})
		calm := held(goOn)
		slug := b.next(t, list, func(ctx context.Context, r *step.Run, name string) (step.Result, error) {
			if name == "1" {
				return step.Result{}, &step.Error{Code: api.CodeStepFailed, Message: "no"}
			}
			return calm(ctx, r, name)
		})
		s := b.serve(t, 1)
		x := s.must(t, b, order{key: "k", flow: slug, customer: slug, mode: execution.Async})
		<-b.callee.called
		<-b.callee.called
		close(goOn)
		x = s.ended(t, b, x.ID)
		if x.Failure == nil || x.Failure.Code != api.CodeStepFailed || x.Charged.String() != "1.01" || b.callee.count(x.ID+":a:1") != 1 {
			t.Errorf("%+v", x)
		}
		if n := b.count(t, `execution_steps WHERE state = 'finished' AND iteration = '1'`); n != 1 || b.callee.count(x.ID+":b") != 0 {
			t.Error("the neighbour is not finished, or something has begun after it")
		}
		b.settled(t)
	})
}

// A server stops while executions are created and claimed: every key is
// answered afterwards, and each execution has run once.
func TestStopAmidRequests(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, "steps: [{id: a, type: http}, {id: b, type: http}]\nprice: {per_run: \"0.1\"}\n", nil)
		s := b.serve(t, 3)
		var all sync.WaitGroup
		orders := make([]order, 60)
		for i := range orders {
			orders[i] = order{key: fmt.Sprint(i), flow: slug, customer: slug}
			if i%2 == 0 {
				orders[i].mode = execution.Async
			}
			all.Go(func() {
				if _, err := s.execute(t, b, orders[i]); err != nil {
					t.Error(err)
				}
			})
			if i == len(orders)/2 {
				<-b.callee.called
				all.Go(s.stop)
			}
		}
		all.Wait()
		if n := b.count(t, `executions WHERE status = 'running'`); n != 0 {
			t.Errorf("%d are running", n)
		}
		other := b.serve(t, 3)
		for _, o := range orders {
			if x := other.ended(t, b, other.must(t, b, o).ID); x.Status != execution.Succeeded {
				t.Errorf("%+v", x)
			}
		}
		for key, n := range b.callee.counts {
			if n != 1 {
				t.Errorf("%s was called %d times", key, n)
			}
		}
		if got := b.balance(t, slug); got != "4 held 0" || b.callee.total() != 120 {
			t.Errorf("%s, %d calls", got, b.callee.total())
		}
		b.settled(t)
	})
}
