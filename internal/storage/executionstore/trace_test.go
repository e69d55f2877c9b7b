package executionstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/model"
)

// echoes is a call in which everything was said in every way: the name that the
// step gives, and a token that the callee gives.
func echoes(_ context.Context, _ *step.Run, name string) (step.Result, error) {
	inner, err := json.Marshal(name)
	if err != nil {
		return step.Result{}, err
	}
	said, err := json.Marshal(map[string]any{
		"text": "for " + name + "!", "within": string(inner), "url": "https://x/?q=" + strings.ReplaceAll(strings.ReplaceAll(name, `"`, "%22"), "@", "%40"),
	})
	if err != nil {
		return step.Result{}, err
	}
	call := &step.Call{Kind: "model", Model: "m", Request: said, Response: json.RawMessage(`{"body": {"token": "t0ps3cret"}, "text": "t0ps3cret"}`)}
	if strings.HasPrefix(name, "fail") {
		return step.Result{}, &step.Error{Code: api.CodeModelError, Message: "not for " + name + " nor t0ps3cret", Call: call}
	}
	return step.Result{Value: map[string]any{"body": map[string]any{"token": "t0ps3cret"}, "name": name}, Call: call}, nil
}

const secretive = `
trace: {redact: ["input.email", "input.more[*].n", "steps.a.body.token"]}
steps:
  - {id: a, type: model, name: "${input.email}"}
  - {id: b, type: transform, value: "${steps.a.body.token} of ${input.email} in ${input.more[1].n}"}
  - {id: c, type: model, name: "fail ${input.email} ${input.more[1].n}"}
`

// What a flow wants kept out of traces is neither stored with calls nor shown,
// in whatever form; what the run needs to go on is kept.
func TestRedaction(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, secretive, echoes)
		finished := make(chan *execution.Trace, 1)
		s := b.serve(t, 1, func(p *execution.Params) { p.Finished = func(t *execution.Trace) { finished <- t } })
		x := s.must(t, b, order{key: "k", flow: slug, input: `{"email":"a\"d@e.f","more":[{"n":1},{"n":48151623}]}`})
		if x.Status != execution.Failed {
			t.Fatalf("%+v", x)
		}
		tr, err := s.Trace(t.Context(), b.project, x.ID)
		if err != nil || len(tr.Steps) != 3 || len(tr.Calls) != 2 {
			t.Fatalf("%+v %v", tr, err)
		}
		parts := []string{fmt.Sprint(x.Failure)}
		for _, one := range []*execution.Trace{&tr, <-finished} {
			for _, c := range one.Calls {
				if one == &tr && (c.Request == nil || c.Response == nil || !json.Valid(c.Request)) {
					t.Errorf("%s %s", c.Request, c.Response)
				}
				parts = append(parts, string(c.Request), string(c.Response), c.Message)
			}
			for _, s := range one.Steps {
				parts = append(parts, string(s.Output), fmt.Sprint(s.Failure))
			}
		}
		shown := strings.Join(parts, "\n")
		for _, text := range []string{"a\"d@", `d@e.f`, "d%40e.f", "t0ps3cret", "48151623"} {
			if strings.Contains(shown, text) {
				t.Errorf("%q is in %s", text, shown)
			}
		}
		if !strings.Contains(shown, "for [redacted]!") {
			t.Errorf("too much is left out of %s", shown)
		}
		if n := b.count(t, `execution_steps WHERE step = 'b' AND output LIKE '%t0ps3cret%'`); n != 1 {
			t.Error("the journal has lost what the run needs")
		}
	})
}

// Nothing is kept of what was said if the flow does not want it.
func TestNothingRecorded(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slug := b.next(t, "trace: {record: false}\nsteps: [{id: a, type: model, name: x}]\n", echoes)
		s := b.serve(t, 1)
		s.must(t, b, order{key: "k", flow: slug})
		if n := b.count(t, `execution_calls WHERE request IS NOT NULL OR response IS NOT NULL`); n != 0 {
			t.Error("something is kept")
		}
	})
}

// outline is a tree as a text.
func outline(nodes []execution.Node) string {
	var parts []string
	for _, n := range nodes {
		part := n.Step.Step
		if n.Step.Iteration != "" {
			part += "@" + n.Step.Iteration
		}
		part += strings.Repeat("*", len(n.Calls))
		if len(n.Inner) > 0 {
			part += "(" + outline(n.Inner) + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// A trace is a tree whatever is within what, also while blocks have not ended.
func TestTree(t *testing.T) {
	const yaml = `
steps:
  - id: pick
    type: branch
    cases:
      - when: true
        steps:
          - id: each
            type: parallel
            over: ["x", "y"]
            concurrency: 1
            steps:
              - id: choose
                type: branch
                cases: [{when: "${index == 0}", steps: [{id: one, type: http, name: one}]}]
                else: {steps: [{id: many, type: parallel, over: [1, 2], concurrency: 1, steps: [{id: deep, type: http, name: "${item}"}]}]}
`
	const whole = "pick(each(choose@0(one@0*) choose@1(many@1(deep@1.0* deep@1.1*))))"
	onBoth(t, func(t *testing.T, b *bench) {
		goOn := make(chan struct{})
		slug := b.next(t, yaml, only("2", held(goOn)))
		s := b.serve(t, 1)
		x := s.must(t, b, order{key: "k", flow: slug, mode: execution.Async})
		for range 3 {
			<-b.callee.called
		}
		for _, want := range []string{whole, whole} {
			tr, err := s.Trace(t.Context(), b.project, x.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(tr.Roots()); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			select {
			case <-goOn:
			default:
				close(goOn)
			}
			s.ended(t, b, x.ID)
		}
	})
}

// Operations are listed in pages that have everything once, the latest first,
// whatever comes meanwhile; costs are what was charged, however it is grouped.
func TestOperationsAndCosts(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		slugs := []string{}
		for range 2 {
			slugs = append(slugs, b.next(t, `
steps: [{id: a, type: model, name: m1}, {id: b, type: model, name: m2}]
limits: {budget: "1"}
price: {tokens: {m1: {input: "1", output: "2", cached: "0.5"}, "*": {input: "3", output: "0"}}}
`, nil))
		}
		b.callee.say(func(_ context.Context, _ *step.Run, name string) (step.Result, error) {
			call := &step.Call{Kind: "model", Model: name, Usage: model.Usage{Input: 10, Output: 5, Cached: 4}}
			return step.Result{Value: map[string]any{}, Call: call}, nil
		})
		s := b.serve(t, 1)
		want := map[string]bool{}
		for i := range 6 {
			x := s.must(t, b, order{key: fmt.Sprint(i), flow: slugs[i%2], customer: slugs[i%2]})
			if x.Charged.String() != "0.048" || x.Usage != (model.Usage{Input: 20, Output: 10, Cached: 8}) {
				t.Fatalf("charged %s for %+v", x.Charged, x.Usage)
			}
			want[x.ID] = true
		}
		last, before := "", ""
		for n := 0; n < 18; {
			page, err := s.Operations(t.Context(), execution.OperationQuery{ProjectID: b.project, Before: before, Limit: 4})
			if err != nil || len(page) == 0 {
				t.Fatalf("%d operations: %v", n, err)
			}
			for _, o := range page {
				if last != "" && o.ID >= last {
					t.Errorf("%s after %s", o.ID, last)
				}
				last = o.ID
				if o.Type == "execute" {
					delete(want, o.ID)
				}
				n++
			}
			before = last
			s.must(t, b, order{key: fmt.Sprint("more", n), flow: slugs[0], customer: slugs[0]})
		}
		if len(want) > 0 {
			t.Errorf("%v are missing", want)
		}
		b.costs(t, s)
	})
}

// costs says whether all groups sum to what was charged.
func (b *bench) costs(t *testing.T, s *server) {
	t.Helper()
	var charged credit.Amount
	if err := b.db.Reader().QueryRowContext(t.Context(), `SELECT CAST(SUM(charged) AS bigint) FROM executions`).Scan(&charged); err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		by := execution.CostGroup{Customer: i&1 != 0, Flow: i&2 != 0, Model: i&4 != 0, Day: i&8 != 0}
		list, err := s.Costs(t.Context(), execution.CostQuery{
			ProjectID: b.project, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), By: by,
		})
		if err != nil {
			t.Fatal(err)
		}
		sum, groups := credit.Amount(0), map[string]bool{}
		for _, one := range list {
			sum += one.Charged
			name := fmt.Sprint(one.Customer, one.Flow, one.Model, one.Day)
			if groups[name] || one.CreditType != "main" || by.Flow == (one.Flow == "") || by.Day == one.Day.IsZero() {
				t.Errorf("%+v", one)
			}
			groups[name] = true
		}
		if sum != charged {
			t.Errorf("%+v: %s of %s", by, sum, charged)
		}
	}
	none, err := s.Costs(t.Context(), execution.CostQuery{ProjectID: b.project, From: time.Unix(0, 0), To: time.Unix(9, 0)})
	if err != nil || len(none) > 0 {
		t.Errorf("%+v %v", none, err)
	}
}
