package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// maxNesting is how deep blocks of steps may nest within those of the flow.
const maxNesting = 4

// maxExpressions is how many ${…} there may be in a definition.
const maxExpressions = 2000

// definition is a definition as it is written, after the schema was checked.
type definition struct {
	Input jsontext.Value `json:"input"`
	Trace *struct {
		Record *bool    `json:"record"`
		Redact []string `json:"redact"`
	} `json:"trace"`
	Steps  jsontext.Value `json:"steps"`
	Output jsontext.Value `json:"output"`
	Price  *priceForm     `json:"price"`
	Limits struct {
		Timeout string         `json:"timeout"`
		Budget  jsontext.Value `json:"budget"`
	} `json:"limits"`
}

// Compile compiles the canonical form of a definition. The error is a
// [*step.Issues] with all that is wrong, as far as what is wrong does not hide
// more: a definition that does not fulfil the schema is not looked at further.
func Compile(types []step.Type, canonical []byte) (*Program, error) {
	if len(canonical) > maxDefinition {
		return nil, tooLong()
	}
	whole, err := template.Decode(canonical)
	if err != nil {
		return nil, step.Refuse("", "this is not JSON: %v", err)
	}
	language, err := languageOf(types)
	if err != nil {
		return nil, err
	}
	if issues := validate(language, whole); issues != nil {
		return nil, &step.Issues{List: issues}
	}
	var d definition
	if err := json.Unmarshal(canonical, &d); err != nil {
		return nil, step.Refuse("", "this cannot be read: %v", err)
	}
	members, _ := whole.(map[string]any)
	return compile(types, &d, members)
}

// languages are the compiled schemas of definitions, by their texts: a program
// has one, and compiling it takes longer than all else.
var languages sync.Map

func languageOf(types []step.Type) (*jsonschema.Schema, error) {
	text := string(Schema(types))
	if known, ok := languages.Load(text); ok {
		return known.(*jsonschema.Schema), nil
	}
	compiled, err := compileSchema(languageSchema(types))
	if err != nil {
		return nil, fmt.Errorf("compile the schema of definitions: %w", err)
	}
	languages.Store(text, compiled)
	return compiled, nil
}

// compilation is a definition that is being compiled.
type compilation struct {
	types     map[string]step.Type
	program   *Program
	issues    []step.Issue
	hasBudget bool
	// nesting is how many blocks are around the one that is compiled.
	nesting int
	// references are checked when all steps are known.
	references []reference
}

func (c *compilation) refuse(path, format string, args ...any) {
	c.issues = append(c.issues, step.Issue{Path: path, Message: fmt.Sprintf(format, args...)})
}

func compile(types []step.Type, d *definition, members map[string]any) (*Program, error) {
	c := &compilation{types: map[string]step.Type{}, program: &Program{byID: map[string]*step.Step{}}}
	for _, t := range types {
		c.types[t.Name()] = t
	}
	c.input(members["input"])
	c.limits(d)
	c.trace(d)
	list, _ := members["steps"].([]any)
	var inner *view
	c.program.Steps, inner = c.block("steps", list, nil)
	c.output(members["output"], inner)
	c.checkReferences()
	c.countExpressions()
	c.price(d.Price)
	c.holdAmount(c.program.Steps)
	if len(c.issues) > 0 {
		slices.SortStableFunc(c.issues, func(a, b step.Issue) int { return strings.Compare(a.Path, b.Path) })
		return nil, &step.Issues{List: slices.Compact(c.issues)}
	}
	return c.program, nil
}

func (c *compilation) limits(d *definition) {
	c.program.Limits.Timeout = DefaultTimeout
	if d.Limits.Timeout != "" {
		c.program.Limits.Timeout = c.duration("limits.timeout", d.Limits.Timeout)
	}
	c.hasBudget = d.Limits.Budget != nil
	c.program.Limits.Budget = c.amount("limits.budget", d.Limits.Budget)
}

// duration reads a time that is above zero and at most a day.
func (c *compilation) duration(path, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > MaxTimeout {
		c.refuse(path, "must be a time above zero and at most %s", "24h")
	}
	return d
}

func (c *compilation) trace(d *definition) {
	c.program.Trace.Record = true
	if d.Trace == nil {
		return
	}
	if d.Trace.Record != nil {
		c.program.Trace.Record = *d.Trace.Record
	}
	c.program.Trace.Redact = d.Trace.Redact
}

func (c *compilation) input(schema any) {
	compiled, err := newInputSchema(schema)
	if err != nil {
		c.issues = append(c.issues, err.List...)
		return
	}
	c.program.input = compiled
}

func (c *compilation) output(value any, inner *view) {
	t, err := template.Compile(value)
	if err != nil {
		c.issues = append(c.issues, templateIssue("output", err))
		return
	}
	c.program.Output = t
	c.references = append(c.references, reference{"output", t, inner, nil})
}

func templateIssue(path string, err error) step.Issue {
	if at, ok := err.(*template.Error); ok { //nolint:errorlint // it is never wrapped
		return step.Issue{Path: path + at.Path, Message: at.Err.Error()}
	}
	return step.Issue{Path: path, Message: err.Error()}
}

// countExpressions refuses more than anybody needs: each takes memory for as long
// as the program is kept.
func (c *compilation) countExpressions() {
	count := 0
	for _, r := range c.references {
		count += r.template.Count()
	}
	if count > maxExpressions {
		c.refuse("", "a flow has at most %d expressions, and this one has %d", maxExpressions, count)
	}
}

// own returns the members of a step that are its type's.
func own(members map[string]any) map[string]any {
	left := maps.Clone(members)
	for name := range common {
		delete(left, name)
	}
	return left
}
