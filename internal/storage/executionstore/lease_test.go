package executionstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// onShared runs a test on the store that several servers may share.
func onShared(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	test(t, newBench(t, engine{"PostgreSQL", storagetest.PostgreSQL, time.Minute}))
}

// stalled is a server that does not renew its leases, which are short.
type stalled struct{ execution.Store }

// Renew implements execution.Store.
func (stalled) Renew(context.Context, [16]byte, time.Duration) ([]execution.Held, error) {
	return nil, errGate
}

func stall(p *execution.Params) {
	p.Store, p.LeaseFor = stalled{p.Store}, 100*time.Millisecond
}

// leased has a server of short leases, which it renews.
func leased(d time.Duration) func(*execution.Params) {
	return func(p *execution.Params) { p.LeaseFor = d }
}

// ahead has a server whose clock is wrong.
func ahead(p *execution.Params) {
	p.Clock = func() time.Time { return time.Now().Add(time.Hour) }
}

// A server stalls past its lease while its call runs, another takes over, and
// the first one wakes: nothing that it writes counts, and there is one result.
func TestSlowOwner(t *testing.T) {
	onShared(t, func(t *testing.T, b *bench) {
		for _, onInterrupt := range []string{"", ", on_interrupt: retry"} {
			slug := b.next(t, `
steps:
  - {id: a, type: http, name: x`+onInterrupt+`}
  - {id: b, type: http, name: y}
output: "${steps.a.output}"
price: {per_run: "1", per_step: {a: "0.5"}}
`, nil)
			goOn, woken := make(chan struct{}), make(chan struct{}, 1)
			called := b.callee.say(func(_ context.Context, r *step.Run, name string) (step.Result, error) {
				if r.Attempt == 1 && name == "x" {
					<-goOn
					woken <- struct{}{}
					name = "from the first"
				}
				return step.Result{Value: map[string]any{"output": name}}, nil
			})
			first := b.serve(t, 1, stall)
			x := first.must(t, b, order{key: slug, flow: slug, customer: slug, mode: execution.Async})
			key := <-called
			second := b.serve(t, 1)
			x = second.ended(t, b, x.ID)
			balance := b.balance(t, slug)
			close(goOn)
			<-woken
			first.stop()
			now, err := second.Get(t.Context(), b.project, x.ID)
			if err != nil || now.Status != x.Status || now.Charged != x.Charged || string(now.Output) != string(x.Output) || now.Lease.Epoch != 2 {
				t.Errorf("%+v, then %+v %v", x, now, err)
			}
			switch {
			case onInterrupt == "" && (x.Failure == nil || x.Failure.Code != api.CodeOutcomeUnknown || b.callee.total() != 1):
				t.Errorf("%+v, %d calls", x, b.callee.total())
			case onInterrupt != "" && (string(x.Output) != `"x"` || b.callee.count(key) != 2 || b.callee.total() != 3):
				t.Errorf("%s, %d calls", x.Output, b.callee.total())
			}
			if again := b.balance(t, slug); again != balance {
				t.Errorf("%s, then %s", balance, again)
			}
			b.settled(t)
			second.stop()
		}
	})
}

// A lease that is renewed is not taken over, whatever other servers think what
// time it is, and also while its server drains.
func TestRenewedLease(t *testing.T) {
	onShared(t, func(t *testing.T, b *bench) {
		slug := b.next(t, "steps: [{id: a, type: http}]\n", nil)
		goOn := make(chan struct{})
		called := b.callee.say(func(ctx context.Context, _ *step.Run, _ string) (step.Result, error) {
			<-goOn
			return step.Result{Value: map[string]any{}}, ctx.Err()
		})
		s := b.serve(t, 1, leased(6*time.Second))
		x := s.must(t, b, order{key: slug, flow: slug, mode: execution.Async})
		<-called
		b.serve(t, 4, ahead)
		b.renewals(t, 2)
		s.engine.Drain()
		b.renewals(t, 2)
		stopped := make(chan struct{})
		go func() {
			s.stop()
			close(stopped)
		}()
		b.renewals(t, 2)
		close(goOn)
		<-stopped
		if x := s.ended(t, b, x.ID); x.Status != execution.Succeeded || x.Lease.Epoch != 1 || b.callee.total() != 1 {
			t.Errorf("%+v, %d calls", x, b.callee.total())
		}
	})
}

// renewals waits until the one lease that there is was renewed n times.
func (b *bench) renewals(t *testing.T, n int) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for last := int64(0); n >= 0; <-look.C {
		var until int64
		err := b.db.Reader().QueryRowContext(t.Context(), `SELECT lease_until FROM executions WHERE status = 'running'`).Scan(&until)
		if err != nil {
			t.Fatal(err)
		}
		if until != last {
			last = until
			n--
		}
	}
}

// unsure is a store that has claimed, and does not say so, a number of times.
type unsure struct {
	execution.Store

	times *int
}

// Claim implements execution.Store.
func (u unsure) Claim(ctx context.Context, c execution.ClaimParams) ([]execution.Execution, error) {
	list, err := u.Store.Claim(ctx, c)
	if err == nil && len(list) > 0 && *u.times > 0 {
		*u.times--
		return list, closed("unknown")
	}
	return list, err
}

// What a server has claimed or created without knowing is neither lost nor run
// twice.
func TestStrays(t *testing.T) {
	onShared(t, func(t *testing.T, b *bench) {
		slug := b.next(t, "steps: [{id: a, type: http}]\nprice: {per_run: \"1\"}\n", nil)
		times := 2
		s := b.serve(t, 1, leased(600*time.Millisecond), func(p *execution.Params) { p.Store = unsure{p.Store, &times} })
		x := s.must(t, b, order{key: "claimed", flow: slug, customer: slug, mode: execution.Async})
		if x := s.ended(t, b, x.ID); x.Status != execution.Succeeded || b.callee.total() != 1 {
			t.Errorf("%+v, %d calls", x, b.callee.total())
		}
		s.stop()
		b.callee.say(nil)
		s = b.serve(t, 1, leased(600*time.Millisecond), func(p *execution.Params) { p.Ledger = &forgetful{Ledger: p.Ledger} })
		o := order{key: "created", flow: slug, customer: slug}
		if _, err := s.execute(t, b, o); fault.CodeOf(err) != api.CodeUnavailable {
			t.Fatal(err)
		}
		done, err := s.execute(t, b, o)
		if err != nil || !done.Replayed || done.Execution.Status != execution.Succeeded || b.callee.total() != 1 {
			t.Errorf("%+v %v, %d calls", done, err, b.callee.total())
		}
		b.settled(t)
	})
}

// A server of SQLite that starts takes what another has left, and nothing of
// what it runs itself ever expires.
func TestOtherBoot(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine{"SQLite", storagetest.SQLite, 0})
	slug := b.next(t, "steps: [{id: a, type: http, on_interrupt: retry}]\nlimits: {timeout: 24h}\n", hangs(nil))
	g := &gate{}
	s := b.serve(t, 1, g.guard)
	x := s.must(t, b, order{key: "k", flow: slug, mode: execution.Async})
	<-b.callee.called
	g.die()
	s.cut()
	if n := b.count(t, `executions WHERE status = 'running'`); n != 1 {
		t.Fatalf("%d are running", n)
	}
	goOn := make(chan struct{})
	called := b.callee.say(func(context.Context, *step.Run, string) (step.Result, error) {
		<-goOn
		return step.Result{Value: map[string]any{}}, nil
	})
	other := b.serve(t, 4, ahead)
	<-called
	if n := b.count(t, `executions WHERE status = 'running' AND epoch = 2 AND lease_until IS NULL`); n != 1 {
		t.Error("it has a lease that expires")
	}
	other.must(t, b, order{key: "second", flow: slug, mode: execution.Async})
	<-called // it has looked at the queue again meanwhile
	close(goOn)
	if x := other.ended(t, b, x.ID); x.Status != execution.Succeeded || x.Lease.Epoch != 2 {
		t.Errorf("%+v", x)
	}
}

// forgetful makes an execution, and does not say so, once.
type forgetful struct {
	execution.Ledger

	done bool
}
