package steptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// schema: the type's schema is one, describes an object, refuses members that
// it does not know, and leaves alone those that every step has.
func (c Case) schema(t *testing.T) {
	own, ok := decode(t, string(c.Type.Schema())).(map[string]any)
	if !ok {
		t.Fatal("the schema is no object")
	}
	if own["additionalProperties"] != false {
		t.Error("the schema must have additionalProperties: false")
	}
	for _, name := range []string{"id", "type", "if", "timeout", "retries", "on_interrupt"} {
		properties, _ := own["properties"].(map[string]any)
		if _, ok := properties[name]; ok {
			t.Errorf("the member %s is not the type's own", name)
		}
	}
	compiled := c.language(t)
	if err := compiled.Validate(c.definition(t, c.Members)); err != nil {
		t.Errorf("the schema refuses the step: %v", err)
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(c.Members), &members); err != nil {
		t.Fatal(err)
	}
	members["no_such_member"] = 1
	more, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range append(c.Refused, string(more)) {
		if compiled.Validate(c.definition(t, refused)) == nil {
			t.Errorf("%s: the schema does not refuse it", refused)
		}
	}
	for members := range c.Broken {
		if err := compiled.Validate(c.definition(t, members)); err != nil {
			t.Errorf("%s: the schema refuses it, so Compile need not: %v", members, err)
		}
	}
}

// language is the schema of definitions whose steps have the case's types.
func (c Case) language(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(flow.Schema(append([]step.Type{c.Type}, c.With...))))
	if err != nil {
		t.Fatalf("the schema is no JSON: %v", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("flow.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("flow.json")
	if err != nil {
		t.Fatalf("the schema is none of 2020-12: %v", err)
	}
	return compiled
}

func (c Case) definition(t *testing.T, members string) any {
	t.Helper()
	one, ok := decode(t, members).(map[string]any)
	if !ok {
		t.Fatalf("%s: members are an object", members)
	}
	one["id"], one["type"] = "a_step", c.Type.Name()
	return map[string]any{"steps": []any{one}}
}

func (c Case) compile(t *testing.T, members string) (step.Program, *step.Step, error) {
	t.Helper()
	own, ok := decode(t, members).(map[string]any)
	if !ok {
		t.Fatalf("%s: members are an object", members)
	}
	for _, name := range []string{"if", "timeout", "retries", "on_interrupt"} {
		delete(own, name)
	}
	s := &step.Step{ID: "a_step", Type: c.Type.Name()}
	program, err := c.Type.Compile(&step.Compiler{Path: "steps[0]", Members: own, Step: s, Blocks: c.blocks})
	s.Program = program
	return program, s, err
}

// blocks compiles inner steps, without what the compiler of flows checks.
func (c Case) blocks(path string, steps any) (*step.Block, error) {
	list, _ := steps.([]any)
	block := &step.Block{}
	for i, one := range list {
		compiled, err := c.inner(fmt.Sprintf("%s[%d]", path, i), one.(map[string]any))
		if err != nil {
			return nil, err
		}
		block.Steps = append(block.Steps, compiled)
	}
	return block, nil
}

func (c Case) inner(path string, members map[string]any) (*step.Step, error) {
	s := &step.Step{ID: fmt.Sprint(members["id"]), Type: fmt.Sprint(members["type"])}
	own := map[string]any{}
	for name, value := range members {
		if name != "id" && name != "type" {
			own[name] = value
		}
	}
	for _, one := range append([]step.Type{c.Type}, c.With...) {
		if one.Name() != s.Type {
			continue
		}
		program, err := one.Compile(&step.Compiler{Path: path, Members: own, Step: s, Blocks: c.blocks})
		s.Program = program
		return s, err
	}
	return nil, step.Refuse(path+".type", "unknown type %s", s.Type)
}

func (c Case) scope(t *testing.T) *template.Scope {
	t.Helper()
	scope := template.NewScope(decode(t, c.Input), decode(t, `{"user": "u-1"}`))
	for id, text := range c.Steps {
		value, _ := decode(t, text).(map[string]any)
		scope.SetStep(id, value)
	}
	return scope
}

// given is what a run is given. Inner steps run one after the other, and are
// journalled nowhere.
func (c Case) given(t *testing.T, scope *template.Scope) *step.Run {
	t.Helper()
	return &step.Run{
		ProjectID: "project", Scope: scope, Key: key, Attempt: 1, Started: c.Started,
		Now: func() time.Time { return c.Now }, Blocks: runner{c}, Emit: func(string) {},
	}
}

type runner struct{ c Case }

// RunBlock implements [step.Runner].
func (r runner) RunBlock(ctx context.Context, b *step.Block, scope *template.Scope, iteration string) error {
	for _, s := range b.Steps {
		if err := context.Cause(ctx); err != nil {
			return step.Failed(err, "the step was interrupted")
		}
		result, err := s.Program.Run(ctx, &step.Run{
			ProjectID: "project", Scope: scope, Key: strings.Join([]string{key, s.ID, iteration}, "/"), Attempt: 1, Started: r.c.Started,
			Now: func() time.Time { return r.c.Now }, Blocks: r, Emit: func(string) {},
		})
		if err != nil {
			return err
		}
		scope.SetStep(s.ID, result.Value)
	}
	return nil
}

func (c Case) run(t *testing.T, members string) any {
	t.Helper()
	program, _, err := c.compile(t, members)
	if err != nil {
		t.Fatal(err)
	}
	result, err := program.Run(t.Context(), c.given(t, c.scope(t)))
	if err != nil {
		t.Fatal(err)
	}
	return any(result.Value)
}

func decode(t *testing.T, text string) any {
	t.Helper()
	value, err := template.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func encode(t *testing.T, value any) string {
	t.Helper()
	encoded, err := template.Encode(value)
	if err != nil {
		t.Fatalf("the value cannot be stored: %v", err)
	}
	return string(encoded)
}
