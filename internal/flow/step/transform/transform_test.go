package transform

import (
	"testing"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/steptest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	steptest.Run(t, steptest.Case{
		Type:    Type{},
		Effect:  step.Pure,
		Members: `{"value": {"sum": "${input.n + 1}", "list": ["${input.list}", "${steps.before.output}"]}}`,
		Input:   `{"n": 9007199254740992, "list": [1.5, {"a": null}]}`,
		Steps:   map[string]string{"before": `{"output": "x"}`},
		Want:    `{"output": {"sum": 9007199254740993, "list": [[1.5, {"a": null}], "x"]}}`,
		Refused: []string{`{}`, `{"value": 1, "values": 2}`, `{"value": 1, "retries": 9}`},
		Broken: map[string]string{
			`{"value": {"a": ["x", "${"]}}`: "steps[0].value.a[1]",
			`{"value": "${nowhere}"}`:       "steps[0].value",
		},
		Failing: []string{`{"value": "${1 / 0}"}`, `{"value": "${repeat('x', 2000000)}"}`, `{"value": "${input.n.member}"}`},
	})
}
