package branch

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/steptest"
	"github.com/actionpulse/actionpulse/internal/flow/step/transform"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	steptest.Run(t, steptest.Case{
		Type: Type{}, With: []step.Type{transform.Type{}}, Effect: step.Pure,
		Members: `{"cases": [
			{"when": "${input.n > 5}", "output": "many"},
			{"when": "${input.n > 1}", "steps": [{"id": "twice", "type": "transform", "value": "${input.n * 2}"}], "output": ["${steps.twice.output}", "${input.list}"]}
		], "else": {"output": "few"}}`,
		Input: `{"n": 3, "list": [{"a": 1}]}`,
		Want:  `{"output": [6, [{"a": 1}]]}`,
		Refused: []string{
			`{}`, `{"cases": []}`, `{"cases": [{"output": 1}]}`, `{"cases": [{"when": true, "then": 1}]}`, `{"cases": [{"when": 1}]}`,
			`{"cases": [{"when": true}], "else": {"when": true}}`, `{"cases": [{"when": true, "steps": [{"id": "x", "type": "nothing"}]}]}`,
			`{"cases": [{"when": true, "steps": [{"id": "__proto__", "type": "transform", "value": 1}]}]}`,
		},
		Broken: map[string]string{
			`{"cases": [{"when": true}, {"when": "yes"}]}`:                                                          "steps[0].cases[1].when",
			`{"cases": [{"when": "${"}]}`:                                                                           "steps[0].cases[0].when",
			`{"cases": [{"when": true, "output": {"a": "${"}}]}`:                                                    "steps[0].cases[0].output.a",
			`{"cases": [{"when": true}], "else": {"output": "${nowhere}"}}`:                                         "steps[0].else.output",
			`{"cases": [{"when": true, "steps": [{"id": "x", "type": "transform", "value": "${"}]}]}`:               "steps[0].cases[0].steps[0].value",
			`{"cases": [{"when": true}], "else": {"steps": [{"id": "x", "type": "transform", "value": "${1 +}"}]}}`: "steps[0].else.steps[0].value",
		},
		Failing: []string{
			`{"cases": [{"when": "${1}"}]}`, `{"cases": [{"when": "${input.list}"}]}`, `{"cases": [{"when": "${1 / 0 > 1 and input.n.x}"}]}`,
			`{"cases": [{"when": true, "output": "${input.n.x}"}]}`,
			`{"cases": [{"when": true, "steps": [{"id": "x", "type": "transform", "value": "${input.n.x}"}]}]}`,
		},
	})
}

// blocks notes what runs.
type blocks struct {
	ran []string
	err error
}

func (b *blocks) RunBlock(_ context.Context, block *step.Block, scope *template.Scope, iteration string) error {
	for _, s := range block.Steps {
		b.ran = append(b.ran, s.ID+iteration)
		scope.SetStep(s.ID, map[string]any{"output": s.ID})
	}
	return b.err
}

func compiled(t *testing.T, members string) (step.Program, *step.Step) {
	t.Helper()
	value, err := template.Decode([]byte(members))
	if err != nil {
		t.Fatal(err)
	}
	s := &step.Step{}
	p, err := Type{}.Compile(&step.Compiler{
		Path: "steps[0]", Members: value.(map[string]any), Step: s,
		Blocks: func(_ string, steps any) (*step.Block, error) {
			block := &step.Block{}
			list, _ := steps.([]any)
			for _, id := range list {
				block.Steps = append(block.Steps, &step.Step{ID: id.(string)})
			}
			return block, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func TestOnlyTheFirstCaseThatHoldsRuns(t *testing.T) {
	t.Parallel()
	p, s := compiled(t, `{"cases": [
		{"when": "${input == 'a'}", "steps": ["one"], "output": "${steps.one.output}"},
		{"when": "${input in ['a', 'b']}", "steps": ["two"], "output": "${steps.two.output}"},
		{"when": "${nil}", "steps": ["never"]}, {"when": false, "steps": ["never"]}, {"when": "${input == 'c'}", "steps": ["three"]}
	], "else": {"steps": ["last"], "output": "${steps.last.output}"}}`)
	if len(s.Inner) != 6 || s.Most != 1 {
		t.Errorf("got %d blocks, %d times, want 6, once", len(s.Inner), s.Most)
	}
	for input, want := range map[string]struct {
		output any
		ran    []string
	}{
		"a": {"one", []string{"one"}}, "b": {"two", []string{"two"}}, "c": {nil, []string{"three"}}, "d": {"last", []string{"last"}},
	} {
		b, scope := &blocks{}, template.NewScope(input, nil)
		result, err := p.Run(t.Context(), &step.Run{Scope: scope, Blocks: b})
		if err != nil {
			t.Errorf("%s: %v", input, err)
		}
		if diff := cmp.Diff(result.Value, map[string]any{"output": want.output}) + cmp.Diff(b.ran, want.ran); diff != "" {
			t.Errorf("%s: %s", input, diff)
		}
	}
}

func TestNoCaseHolds(t *testing.T) {
	t.Parallel()
	p, _ := compiled(t, `{"cases": [{"when": false, "steps": ["one"], "output": 1}]}`)
	b := &blocks{}
	result, err := p.Run(t.Context(), &step.Run{Scope: template.NewScope(nil, nil), Blocks: b})
	if err != nil || result.Value["output"] != nil || len(b.ran) > 0 {
		t.Errorf("got %v, %v, and %v ran, want null and nothing", result.Value, err, b.ran)
	}
}

func TestAFailureWithinIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	p, _ := compiled(t, `{"cases": [{"when": true, "steps": ["one"], "output": 1}]}`)
	failed := &step.Error{Code: api.CodeModelError, Message: "no", Outcome: step.Unknown}
	_, err := p.Run(t.Context(), &step.Run{Scope: template.NewScope(nil, nil), Blocks: &blocks{err: failed}})
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
}
