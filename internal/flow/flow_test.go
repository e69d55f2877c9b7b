package flow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/branch"
	"github.com/actionpulse/actionpulse/internal/flow/step/parallel"
	"github.com/actionpulse/actionpulse/internal/flow/step/transform"
	"github.com/actionpulse/actionpulse/internal/flow/step/wait"
)

// caller is a type of steps that call, so that what is theirs only is tested
// without the types that do.
type caller struct{}

func (caller) Name() string { return "call" }
func (caller) Schema() json.RawMessage {
	return json.RawMessage(`{"type": "object", "properties": {"what": {}}, "additionalProperties": false}`)
}

func (caller) Compile(c *step.Compiler) (step.Program, error) {
	_, err := c.Template("what")
	return calling{}, err
}

type calling struct{ step.Program }

func (calling) Effect() step.Effect { return step.Calls }

var types = []step.Type{transform.Type{}, branch.Type{}, parallel.Type{}, wait.Type{}, caller{}}

// compile compiles a definition in JSON.
func compile(t *testing.T, source string) (*flow.Program, error) {
	t.Helper()
	canonical, err := flow.Canonical([]byte(source), flow.JSON)
	if err != nil {
		return nil, err
	}
	return flow.Compile(types, canonical)
}

func mustCompile(t *testing.T, source string) *flow.Program {
	t.Helper()
	p, err := compile(t, source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return p
}

func issues(t *testing.T, err error) []step.Issue {
	t.Helper()
	found, ok := errors.AsType[*step.Issues](err)
	if !ok {
		t.Fatalf("got %v, want issues", err)
	}
	return found.List
}

// steps writes a definition of steps that give null.
func steps(ids ...string) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = fmt.Sprintf(`{"id": %q, "type": "transform", "value": null}`, id)
	}
	return strings.Join(texts, ",")
}

func nested(levels int) string {
	inner := steps("deepest")
	for i := range levels {
		inner = fmt.Sprintf(`{"id": "level%d", "type": "branch", "cases": [{"when": true, "steps": [%s]}]}`, i, inner)
	}
	return `{"steps": [` + inner + `]}`
}
