// Package transform is the type of steps that make a value of other values.
package transform

import (
	"context"
	"encoding/json"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// Type implements [step.Type].
type Type struct{}

var _ step.Quiet = Type{}

// Quiet implements [step.Quiet].
func (Type) Quiet() {}

// Name implements [step.Type].
func (Type) Name() string { return "transform" }

// Schema implements [step.Type].
func (Type) Schema() json.RawMessage {
	return json.RawMessage(`{
		"type": "object",
		"description": "Gives a value: steps.<id>.output.",
		"properties": {"value": {"description": "Any JSON whose texts may hold expressions."}},
		"required": ["value"],
		"additionalProperties": false
	}`)
}

// Compile implements [step.Type].
func (Type) Compile(c *step.Compiler) (step.Program, error) {
	value, err := c.Template("value")
	if err != nil {
		return nil, err
	}
	return program{value}, nil
}

type program struct{ value *template.Template }

// Effect implements [step.Program].
func (program) Effect() step.Effect { return step.Pure }

// Run implements [step.Program].
func (p program) Run(_ context.Context, r *step.Run) (step.Result, error) {
	value, err := p.value.Eval(r.Scope)
	if err != nil {
		return step.Result{}, step.Failed(err, "the value cannot be made: "+err.Error())
	}
	return step.Result{Value: map[string]any{"output": value}}, nil
}
