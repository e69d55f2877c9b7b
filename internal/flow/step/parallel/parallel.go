// Package parallel is the type of steps that run a block for each element of a
// list, several at a time.
package parallel

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

const (
	defaultConcurrency = 4
	defaultMaxItems    = 100
)

// Type implements [step.Type].
type Type struct{}

var _ step.Quiet = Type{}

// Quiet implements [step.Quiet].
func (Type) Quiet() {}

// Name implements [step.Type].
func (Type) Name() string { return "parallel" }

// Schema implements [step.Type].
func (Type) Schema() json.RawMessage {
	return json.RawMessage(`{
		"type": "object",
		"description": "Runs steps for each element of a list, which they see as item and its number as index: steps.<id>.output is the list of outputs, in the order of the list.",
		"properties": {
			"over": {"type": ["string", "array"], "description": "The list."},
			"steps": {"$ref": "#/$defs/steps"},
			"output": {"description": "Sees the steps, item and index; by default null."},
			"concurrency": {"type": "integer", "minimum": 1, "maximum": 16, "default": 4, "description": "How many run at a time."},
			"max_items": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "How long the list may be; a longer one fails the step."}
		},
		"required": ["over", "steps"],
		"additionalProperties": false
	}`)
}

// Compile implements [step.Type].
func (Type) Compile(c *step.Compiler) (step.Program, error) {
	p := program{
		concurrency: whole(c.Members["concurrency"], defaultConcurrency),
		maxItems:    whole(c.Members["max_items"], defaultMaxItems),
	}
	var errs [3]error
	p.over, errs[0] = list(c)
	c.Names = []string{"item", "index"}
	if p.block, errs[1] = c.Blocks(c.Path+".steps", c.Members["steps"]); errs[1] == nil {
		c.Step.Inner = []*step.Block{p.block}
	}
	if output, ok := c.Members["output"]; ok && errs[1] == nil {
		p.output, errs[2] = c.Inside(c.Path+".output", output, p.block)
	}
	c.Step.Most = int64(p.maxItems)
	return p, step.Join(errs[:]...)
}

// list compiles the list, of which a plain text is none.
func list(c *step.Compiler) (*template.Template, error) {
	t, err := c.Template("over")
	if err != nil {
		return nil, err
	}
	if fixed, ok := t.Literal(); ok {
		if _, ok := fixed.([]any); !ok {
			return nil, step.Refuse(c.Path+".over", "must be a list or an expression")
		}
	}
	return t, nil
}

func whole(value any, absent int) int {
	if n, ok := value.(int64); ok {
		return int(n)
	}
	return absent
}

type program struct {
	over, output          *template.Template
	block                 *step.Block
	concurrency, maxItems int
}

// Effect implements [step.Program].
func (program) Effect() step.Effect { return step.Pure }

// Run implements [step.Program]. The first failure cancels what runs beside it,
// and is returned once all have ended.
func (p program) Run(ctx context.Context, r *step.Run) (step.Result, error) {
	items, err := p.items(r.Scope)
	if err != nil {
		return step.Result{}, err
	}
	outputs := make([]any, len(items))
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(p.concurrency)
	for i, item := range items {
		if running.Err() != nil {
			break
		}
		group.Go(func() error {
			scope := r.Scope.Inner()
			scope.Name("item", item)
			scope.Name("index", int64(i))
			output, err := p.one(running, r.Blocks, scope, strconv.Itoa(i))
			outputs[i] = output
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return step.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return step.Result{}, step.Failed(context.Cause(ctx), "the step was interrupted")
	}
	if err := template.CheckSize(outputs); err != nil {
		return step.Result{}, step.Failed(err, "the output is too large: "+err.Error())
	}
	return step.Result{Value: map[string]any{"output": outputs}}, nil
}

func (p program) one(ctx context.Context, blocks step.Runner, scope *template.Scope, iteration string) (any, error) {
	if ctx.Err() != nil {
		return nil, step.Failed(context.Cause(ctx), "the step was interrupted")
	}
	if err := blocks.RunBlock(ctx, p.block, scope, iteration); err != nil {
		return nil, err
	}
	if p.output == nil {
		return nil, nil
	}
	output, err := p.output.Eval(scope)
	if err != nil {
		return nil, step.Failed(err, "the output of iteration "+iteration+" cannot be made: "+err.Error())
	}
	return output, nil
}

func (p program) items(scope *template.Scope) ([]any, error) {
	value, err := p.over.Eval(scope)
	if err != nil {
		return nil, step.Failed(err, "the list cannot be made: "+err.Error())
	}
	items, ok := value.([]any)
	if !ok {
		return nil, step.Failed(nil, "over is not a list")
	}
	if len(items) > p.maxItems {
		return nil, step.Failed(nil, fmt.Sprintf("the list has %d elements, and max_items is %d", len(items), p.maxItems))
	}
	return items, nil
}
