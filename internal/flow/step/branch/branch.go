// Package branch is the type of steps that run one of several blocks: the one
// of the first condition that holds.
package branch

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// Type implements [step.Type].
type Type struct{}

var _ step.Quiet = Type{}

// Quiet implements [step.Quiet].
func (Type) Quiet() {}

// Name implements [step.Type].
func (Type) Name() string { return "branch" }

// Schema implements [step.Type].
func (Type) Schema() json.RawMessage {
	return json.RawMessage(`{
		"type": "object",
		"description": "Runs the steps of the first case that holds: steps.<id>.output is that case's output, or null if none holds.",
		"properties": {
			"cases": {
				"type": "array", "minItems": 1, "maxItems": 50,
				"items": {
					"type": "object",
					"properties": {
						"when": {"type": ["string", "boolean"], "description": "True or false; null is false."},
						"steps": {"$ref": "#/$defs/steps"},
						"output": {"description": "Sees the steps of the case."}
					},
					"required": ["when"], "additionalProperties": false
				}
			},
			"else": {
				"type": "object",
				"properties": {"steps": {"$ref": "#/$defs/steps"}, "output": {}},
				"additionalProperties": false
			}
		},
		"required": ["cases"],
		"additionalProperties": false
	}`)
}

// Compile implements [step.Type].
func (Type) Compile(c *step.Compiler) (step.Program, error) {
	p, errs := program{}, []error{}
	cases, _ := c.Members["cases"].([]any)
	for i, one := range cases {
		members, _ := one.(map[string]any)
		compiled, err := compileCase(c, fmt.Sprintf("%s.cases[%d]", c.Path, i), members)
		p.cases, errs = append(p.cases, compiled), append(errs, err)
	}
	if members, ok := c.Members["else"].(map[string]any); ok {
		compiled, err := compileCase(c, c.Path+".else", members)
		p.otherwise, errs = compiled, append(errs, err)
	}
	c.Step.Most = 1
	return p, step.Join(errs...)
}

// choice is a case; when is nil for the last resort.
type choice struct {
	when, output *template.Template
	block        *step.Block
}

func compileCase(c *step.Compiler, path string, members map[string]any) (*choice, error) {
	var errs [3]error
	one := &choice{}
	if when, ok := members["when"]; ok {
		one.when, errs[0] = condition(c, path+".when", when)
	}
	if one.block, errs[1] = c.Blocks(path+".steps", members["steps"]); errs[1] == nil {
		c.Step.Inner = append(c.Step.Inner, one.block)
	}
	if output, ok := members["output"]; ok && errs[1] == nil {
		one.output, errs[2] = c.Inside(path+".output", output, one.block)
	}
	return one, step.Join(errs[:]...)
}

// condition compiles a condition, of which a plain text is none.
func condition(c *step.Compiler, path string, value any) (*template.Template, error) {
	t, err := c.Inside(path, value, nil)
	if err != nil {
		return nil, err
	}
	if fixed, ok := t.Literal(); ok {
		if _, ok := fixed.(bool); !ok {
			return nil, step.Refuse(path, "must be true, false or an expression")
		}
	}
	return t, nil
}

type program struct {
	cases     []*choice
	otherwise *choice
}

// Effect implements [step.Program].
func (program) Effect() step.Effect { return step.Pure }

// Run implements [step.Program].
func (p program) Run(ctx context.Context, r *step.Run) (step.Result, error) {
	one, err := p.choose(r.Scope)
	if err != nil {
		return step.Result{}, err
	}
	if one == nil {
		return result(nil), nil
	}
	scope := r.Scope.Inner()
	if err := r.Blocks.RunBlock(ctx, one.block, scope, ""); err != nil {
		return step.Result{}, err
	}
	if one.output == nil {
		return result(nil), nil
	}
	output, err := one.output.Eval(scope)
	if err != nil {
		return step.Result{}, step.Failed(err, "the output cannot be made: "+err.Error())
	}
	return result(output), nil
}

// choose returns the first case that holds, else the last resort, which may be
// nil.
func (p program) choose(scope *template.Scope) (*choice, error) {
	for _, one := range p.cases {
		holds, err := step.Holds(one.when, scope)
		if err != nil {
			return nil, err
		}
		if holds {
			return one, nil
		}
	}
	return p.otherwise, nil
}

func result(output any) step.Result { return step.Result{Value: map[string]any{"output": output}} }
