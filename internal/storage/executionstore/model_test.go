package executionstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// call is a step of a random flow, and how what it calls behaves: it answers
// with something else so many times before it succeeds.
type call struct {
	kind    string // ok, refuse, busy, unknown
	times   int
	retries int
	again   bool
}

// fate is what the model says of a run that nobody interrupts.
type fate struct {
	status  execution.Status
	code    api.Code
	counts  []int
	charged credit.Amount
}

const (
	perRun  = credit.Amount(1_000_000)
	perStep = credit.Amount(10_000)
)

// predict says how a flow ends.
func predict(calls []call) fate {
	f := fate{status: execution.Succeeded, charged: perRun}
	for _, c := range calls {
		repeats, code := 0, api.Code("")
		switch c.kind {
		case "refuse":
			code = api.CodeModelError
		case "busy":
			if repeats = min(c.times, c.retries); repeats < c.times {
				code = api.CodeModelError
			}
		case "unknown":
			if c.again {
				repeats = min(c.times, c.retries)
			}
			if repeats < c.times {
				code = api.CodeOutcomeUnknown
			}
		}
		f.counts = append(f.counts, 1+repeats)
		if code != "" {
			f.status, f.code = execution.Failed, code
			return f
		}
		f.charged += perStep
	}
	return f
}

// behave is the callee of these flows: the name of a call says what it does. It
// answers at once, unless it is held up.
func (w *machine) behave(ctx context.Context, _ *step.Run, name string) (step.Result, error) {
	if w.isHeld() {
		w.waiting <- struct{}{}
		<-ctx.Done()
		return step.Result{}, &step.Error{Code: api.CodeModelError, Message: "cut", Outcome: step.Unknown, Err: context.Cause(ctx)}
	}
	var kind, key string
	var times int
	if _, err := fmt.Sscan(name, &kind, &times, &key); err != nil {
		return step.Result{}, err
	}
	w.mu.Lock()
	w.seen[key]++
	n := w.seen[key]
	w.mu.Unlock()
	e := &step.Error{Code: api.CodeModelError, Message: "no", After: time.Millisecond}
	switch {
	case kind == "refuse":
		return step.Result{}, e
	case kind == "busy" && n <= times:
		e.Retryable = true
		return step.Result{}, e
	case kind == "unknown" && n <= times:
		e.Outcome = step.Unknown
		return step.Result{}, e
	}
	return step.Result{Value: map[string]any{"output": name}}, nil
}

// machine is a server, and what should come of what it is asked.
type machine struct {
	*bench

	t     *testing.T
	s     *server
	gate  *gate
	round int
	slug  string
	flow  []call
	// posted is what the customer should have.
	posted credit.Amount
	made   []execution.Execution
	orders []order

	mu      sync.Mutex
	held    bool
	waiting chan struct{}
	// seen counts calls by what the flow calls them.
	seen map[string]int
}

func (w *machine) isHeld() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

func (w *machine) hold(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = on
}

// draw publishes a random flow.
func (w *machine) draw(t *rapid.T) {
	w.flow, w.made, w.orders, w.posted = nil, nil, nil, 0
	w.seen, w.waiting = map[string]int{}, make(chan struct{}, 1)
	w.hold(false)
	var yaml strings.Builder
	yaml.WriteString("steps:\n")
	for i := range rapid.IntRange(1, 4).Draw(t, "steps") {
		c := call{
			kind:  rapid.SampledFrom([]string{"ok", "ok", "refuse", "busy", "unknown"}).Draw(t, "kind"),
			times: rapid.IntRange(1, 3).Draw(t, "times"), retries: rapid.IntRange(0, 3).Draw(t, "retries"), again: rapid.Bool().Draw(t, "again"),
		}
		onInterrupt := "fail"
		if c.again {
			onInterrupt = "retry"
		}
		fmt.Fprintf(&yaml, "  - {id: s%d, type: model, name: \"%s %d ${input.key}/%d\", retries: %d, on_interrupt: %s}\n", i, c.kind, c.times, i, c.retries, onInterrupt)
		w.flow = append(w.flow, c)
	}
	yaml.WriteString("price: {per_run: \"1\", per_step: \"0.01\"}\n")
	w.round++
	w.slug = fmt.Sprint("flow", w.round)
	w.publish(w.t, w.slug, yaml.String())
	w.topup(w.t, w.slug, "3")
	w.posted = 3 * perRun
	w.callee.say(w.behave)
}

// order makes a request with a new key.
func (w *machine) order(mode execution.Mode) order {
	key := fmt.Sprintf("%s/%d", w.slug, len(w.orders))
	return order{key: key, flow: w.slug, customer: w.slug, input: fmt.Sprintf(`{"key":%q}`, key), mode: mode}
}

// execute runs the flow, and nobody interrupts it.
func (w *machine) execute(t *rapid.T) {
	o := w.order(rapid.SampledFrom([]execution.Mode{execution.Sync, execution.Async}).Draw(t, "mode"))
	done, err := w.s.execute(w.t, w.bench, o)
	if w.posted < perRun+perStep*credit.Amount(len(w.flow)) {
		if fault.CodeOf(err) != api.CodeInsufficientCredits {
			t.Fatalf("with %s: %+v %v", w.posted, done, err)
		}
		return
	}
	if err != nil || done.Replayed {
		t.Fatalf("%+v %v", done, err)
	}
	x, want := w.s.ended(w.t, w.bench, done.Execution.ID), predict(w.flow)
	if x.Status != want.status || x.Charged != want.charged || x.Failure != nil && x.Failure.Code != want.code {
		t.Fatalf("%s charged %s %v, want %+v of %+v", x.Status, x.Charged, x.Failure, want, w.flow)
	}
	for i := range w.flow {
		n := 0
		if i < len(want.counts) {
			n = want.counts[i]
		}
		if got := w.callee.count(fmt.Sprintf("%s:s%d", x.ID, i)); got != n {
			t.Fatalf("step %d was called %d times, want %d of %+v", i, got, n, w.flow)
		}
	}
	w.note(o, x)
}

func (w *machine) note(o order, x execution.Execution) {
	w.posted -= x.Charged
	w.made, w.orders = append(w.made, x), append(w.orders, o)
}

// interrupt begins a run, and stops its server, kills it or cancels while its
// first call is under way.
func (w *machine) interrupt(t *rapid.T) {
	if w.posted < perRun+perStep*credit.Amount(len(w.flow)) {
		return
	}
	w.hold(true)
	o := w.order(execution.Async)
	x := w.s.must(w.t, w.bench, o)
	<-w.waiting
	how := rapid.SampledFrom([]string{"cancel", "stop", "kill"}).Draw(t, "how")
	switch how {
	case "cancel":
		if _, err := w.s.Cancel(w.t.Context(), w.project, x.ID); err != nil {
			t.Fatal(err)
		}
		w.hold(false)
	default:
		if how == "kill" {
			w.gate.die()
		}
		w.s.cut()
		w.hold(false)
		w.expire(w.t)
		w.serveAnew()
	}
	x = w.s.ended(w.t, w.bench, x.ID)
	want := predict(w.flow)
	switch {
	case how == "cancel":
		want.status, want.charged = execution.Cancelled, perRun
	case !w.flow[0].again:
		want.status, want.code, want.charged = execution.Failed, api.CodeOutcomeUnknown, perRun
	}
	if x.Status != want.status || x.Charged != want.charged || x.Failure != nil && x.Failure.Code != want.code {
		t.Fatalf("%+v %s: %s charged %s %v, want %+v of %+v", x, how, x.Status, x.Charged, x.Failure, want, w.flow)
	}
	w.note(o, x)
}

// repeat asks again what was asked before.
func (w *machine) repeat(t *rapid.T) {
	if len(w.made) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.made)-1).Draw(t, "of")
	calls := w.callee.total()
	again, err := w.s.execute(w.t, w.bench, w.orders[i])
	x := w.made[i]
	if err != nil || !again.Replayed || again.Execution.ID != x.ID || again.Execution.Status != x.Status || again.Execution.Charged != x.Charged {
		t.Fatalf("%+v %v, want %+v", again, err, x)
	}
	if y, err := w.s.Cancel(w.t.Context(), w.project, x.ID); err != nil || y.Status != x.Status || w.callee.total() != calls {
		t.Fatalf("%+v %v, want %+v", y, err, x)
	}
}

// restart stops the server in order, with nothing under way.
func (w *machine) restart(*rapid.T) {
	w.s.stop()
	w.serveAnew()
}

func (w *machine) serveAnew() {
	w.gate = &gate{}
	w.s = w.serve(w.t, 2, w.gate.guard)
}

// check compares what is there with what should be.
func (w *machine) check(t *rapid.T) {
	if got := w.balance(w.t, w.slug); got != w.posted.String()+" held 0" {
		t.Fatalf("%s, want %s", got, w.posted)
	}
}

// Random flows with random callees, run, repeated, cancelled, and interrupted by
// servers that stop or die, do what a small model says.
func TestModel(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		w := &machine{bench: b, t: t}
		w.serveAnew()
		rapid.Check(t, func(rt *rapid.T) {
			w.draw(rt)
			rt.Repeat(map[string]func(*rapid.T){
				"execute": w.execute, "interrupt": w.interrupt, "repeat": w.repeat, "restart": w.restart, "": w.check,
				"topup": func(*rapid.T) {
					w.topup(w.t, w.slug, "2")
					w.posted += 2 * perRun
				},
			})
			w.settled(w.t)
		})
	})
}
