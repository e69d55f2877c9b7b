package parallel

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/steptest"
	"github.com/actionpulse/actionpulse/internal/flow/step/transform"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	steptest.Run(t, steptest.Case{
		Type: Type{}, With: []step.Type{transform.Type{}}, Effect: step.Pure,
		Members: `{"over": "${input.list}", "steps": [{"id": "shout", "type": "transform", "value": "${upper(item.name)}${index}"}],
			"output": {"is": "${steps.shout.output}", "was": "${item}"}}`,
		Input: `{"list": [{"name": "a"}, {"name": "b"}]}`,
		Want:  `{"output": [{"is": "A0", "was": {"name": "a"}}, {"is": "B1", "was": {"name": "b"}}]}`,
		Refused: []string{
			`{}`, `{"over": []}`, `{"over": 1, "steps": []}`, `{"over": [], "steps": [], "concurrency": 0}`, `{"over": [], "steps": [], "concurrency": 17}`,
			`{"over": [], "steps": [], "max_items": 1001}`, `{"over": [], "steps": [], "max_items": "${input.n}"}`, `{"over": [], "steps": [], "max_items": 1.5}`,
		},
		Broken: map[string]string{
			`{"over": "a list", "steps": []}`:                                          "steps[0].over",
			`{"over": ["${"], "steps": []}`:                                            "steps[0].over[0]",
			`{"over": [], "steps": [], "output": "${"}`:                                "steps[0].output",
			`{"over": [], "steps": [{"id": "x", "type": "transform", "value": "${"}]}`: "steps[0].steps[0].value",
		},
		Failing: []string{
			`{"over": "${input.list}", "steps": [], "max_items": 1}`, `{"over": "${input.nothing}", "steps": []}`, `{"over": "${input}", "steps": []}`,
			`{"over": "${1 / 0}", "steps": []}`, `{"over": [1], "steps": [], "output": "${item.x}"}`,
			`{"over": [1], "steps": [{"id": "x", "type": "transform", "value": "${item.x}"}]}`,
			`{"over": [1, 2, 3], "steps": [], "output": "${repeat('x', 500000)}"}`,
		},
	})
}

// runner runs a function in place of steps.
type runner func(ctx context.Context, scope *template.Scope, iteration string) error

func (r runner) RunBlock(ctx context.Context, _ *step.Block, scope *template.Scope, iteration string) error {
	return r(ctx, scope, iteration)
}

func compiled(t *testing.T, members string) (step.Program, *step.Step) {
	t.Helper()
	value, err := template.Decode([]byte(members))
	if err != nil {
		t.Fatal(err)
	}
	s := &step.Step{}
	c := &step.Compiler{Path: "steps[0]", Members: value.(map[string]any), Step: s}
	c.Blocks = func(string, any) (*step.Block, error) {
		if diff := cmp.Diff(c.Names, []string{"item", "index"}); diff != "" {
			t.Error(diff)
		}
		return &step.Block{}, nil
	}
	p, err := Type{}.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func TestNoMoreThanConcurrencyRunAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := compiled(t, `{"over": "${1..20}", "steps": [], "output": "${steps.x.output}", "concurrency": 3, "max_items": 20}`)
		if s.Most != 20 || len(s.Inner) != 1 {
			t.Errorf("got %d blocks, %d times, want 1, 20 times", len(s.Inner), s.Most)
		}
		var now, most atomic.Int64
		var mu sync.Mutex
		seen := map[string]bool{}
		result, err := p.Run(t.Context(), &step.Run{Scope: template.NewScope(nil, nil), Blocks: runner(
			func(_ context.Context, scope *template.Scope, iteration string) error {
				mu.Lock()
				seen[iteration] = true
				most.Store(max(most.Load(), now.Add(1)))
				mu.Unlock()
				<-time.After(time.Second)
				now.Add(-1)
				scope.SetStep("x", map[string]any{"output": iteration})
				return nil
			})})
		if err != nil {
			t.Fatal(err)
		}
		outputs := result.Value["output"].([]any)
		if most.Load() != 3 || len(seen) != 20 || len(outputs) != 20 {
			t.Errorf("%d at a time, %d iterations, %d outputs; want 3, 20, 20", most.Load(), len(seen), len(outputs))
		}
		if outputs[0] != "0" || outputs[19] != "19" {
			t.Errorf("the outputs are not in the order of the list: %v", outputs)
		}
	})
}

func TestTheFirstFailureCancelsTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := compiled(t, `{"over": "${1..50}", "steps": [], "concurrency": 4}`)
		first := step.Failed(nil, "the first")
		var began, cancelled atomic.Int64
		_, err := p.Run(t.Context(), &step.Run{Scope: template.NewScope(nil, nil), Blocks: runner(
			func(ctx context.Context, _ *template.Scope, iteration string) error {
				began.Add(1)
				if iteration == "2" {
					<-time.After(time.Second)
					return first
				}
				<-ctx.Done()
				cancelled.Add(1)
				return step.Failed(ctx.Err(), "a later one")
			})})
		if !errors.Is(err, first) {
			t.Errorf("got %v, want the first failure", err)
		}
		if began.Load() != 4 || cancelled.Load() != 3 {
			t.Errorf("%d began and %d were cancelled; want 4 and 3: none may begin after a failure", began.Load(), cancelled.Load())
		}
	})
}

func TestIterationsDoNotSeeOneAnother(t *testing.T) {
	t.Parallel()
	p, _ := compiled(t, `{"over": "${1..40}", "steps": [], "concurrency": 16, "output": "${steps.x.output}|${item}"}`)
	scope := template.NewScope(nil, nil)
	result, err := p.Run(t.Context(), &step.Run{Scope: scope, Blocks: runner(
		func(_ context.Context, scope *template.Scope, iteration string) error {
			if iteration != "0" {
				scope.SetStep("x", map[string]any{"output": iteration})
			}
			return nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	outputs := result.Value["output"].([]any)
	if outputs[0] != "|1" || outputs[39] != "39|40" {
		t.Errorf("got %v and %v, want |1 and 39|40", outputs[0], outputs[39])
	}
	left, err := template.Compile("${steps.x}${item}")
	if err != nil {
		t.Fatal(err)
	}
	if value, err := left.Eval(scope); value != "" || err != nil {
		t.Errorf("the scope outside sees %v, %v", value, err)
	}
}

func TestALongListRunsNothing(t *testing.T) {
	t.Parallel()
	p, _ := compiled(t, `{"over": "${1..101}", "steps": []}`)
	_, err := p.Run(t.Context(), &step.Run{Scope: template.NewScope(nil, nil), Blocks: runner(
		func(context.Context, *template.Scope, string) error {
			t.Error("an iteration runs")
			return nil
		})})
	if err == nil || !strings.Contains(err.Error(), "max_items is 100") {
		t.Errorf("got %v", err)
	}
}
