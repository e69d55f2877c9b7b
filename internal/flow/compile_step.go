package flow

import (
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// defaultRetries is how often a call is repeated that has certainly not
// succeeded.
const defaultRetries = 2

// view is what a template sees, the last thing first.
type view struct {
	before *view
	// step is the id of a step, or name what a block adds.
	step, name string
}

func (v *view) sees(id string) bool {
	for ; v != nil; v = v.before {
		if v.step == id {
			return true
		}
	}
	return false
}

func (v *view) named(name string) bool {
	for ; v != nil; v = v.before {
		if v.name == name {
			return true
		}
	}
	return false
}

// reference is a template and what it sees: a view, and the steps of a block
// with what is added for it.
type reference struct {
	path     string
	template *template.Template
	view     *view
	inside   *view
}

// checkReferences refuses templates that refer to what they do not see.
func (c *compilation) checkReferences() {
	for _, r := range c.references {
		for _, id := range r.template.Steps() {
			switch {
			case r.view.sees(id) || r.inside.sees(id):
			case c.program.byID[id] != nil:
				c.refuse(r.path, "the step %s is not seen here: it runs later, or within another step", id)
			default:
				c.refuse(r.path, "there is no step %s", shorten(id))
			}
		}
		for _, name := range r.template.Names() {
			if name != "input" && name != "context" && !r.view.named(name) && !r.inside.named(name) {
				c.refuse(r.path, "%s is only known within a step that goes through a list", name)
			}
		}
	}
}

// block compiles steps that run one after the other, and returns what is seen
// after them.
func (c *compilation) block(path string, list []any, seen *view) (*step.Block, *view) {
	block := &step.Block{}
	for i, one := range list {
		members, _ := one.(map[string]any)
		at := element(path, i)
		if c.program.Count++; c.program.Count > maxSteps {
			if c.program.Count == maxSteps+1 {
				c.refuse(at, "a flow has at most %d steps", maxSteps)
			}
			return block, seen
		}
		s := c.step(at, members, seen)
		block.Steps = append(block.Steps, s)
		seen = &view{before: seen, step: s.ID}
	}
	return block, seen
}

func (c *compilation) step(path string, members map[string]any, seen *view) *step.Step {
	s := &step.Step{ID: text(members["id"]), Type: text(members["type"]), OnInterrupt: step.Fail, Most: 1}
	if c.program.byID[s.ID] != nil {
		c.refuse(path+".id", "the id %s is used before: it must be unique in the whole definition", s.ID)
	}
	c.program.byID[s.ID] = s
	c.common(path, members, s, seen)
	program, err := c.types[s.Type].Compile(c.compiler(path, members, s, seen))
	if issues, ok := err.(*step.Issues); ok { //nolint:errorlint // it is never wrapped
		c.issues = append(c.issues, issues.List...)
		return s
	}
	if err != nil {
		c.refuse(path, "%v", err)
		return s
	}
	s.Program = program
	c.calls(members, s)
	return s
}

// common reads the members that every step has.
func (c *compilation) common(path string, members map[string]any, s *step.Step, seen *view) {
	if timeout, ok := members["timeout"]; ok {
		s.Timeout = c.duration(path+".timeout", text(timeout))
	}
	condition, ok := members["if"]
	if !ok {
		return
	}
	t, err := template.Compile(condition)
	if err != nil {
		c.issues = append(c.issues, templateIssue(path+".if", err))
		return
	}
	if value, fixed := t.Literal(); fixed {
		if _, ok := value.(bool); !ok {
			c.refuse(path+".if", "must be true, false or an expression")
		}
	}
	s.If = t
	c.references = append(c.references, reference{path + ".if", t, seen, nil})
}

// calls reads the members that steps do not have whose type never calls.
func (c *compilation) calls(members map[string]any, s *step.Step) {
	if _, quiet := c.types[s.Type].(step.Quiet); quiet {
		return
	}
	s.Retries = defaultRetries
	if retries, ok := members["retries"].(int64); ok {
		s.Retries = int(retries)
	}
	if wanted := text(members["on_interrupt"]); wanted != "" {
		s.OnInterrupt = step.OnInterrupt(wanted)
	}
}

// compiler returns what a type compiles a step with.
func (c *compilation) compiler(path string, members map[string]any, s *step.Step, seen *view) *step.Compiler {
	compiler := &step.Compiler{Path: path, Members: own(members), Step: s}
	after := map[*step.Block]*view{}
	compiler.Blocks = func(path string, steps any) (*step.Block, error) {
		if c.nesting >= maxNesting {
			return nil, step.Refuse(path, "blocks of steps nest at most %d deep", maxNesting)
		}
		inner := seen
		for _, name := range compiler.Names {
			inner = &view{before: inner, name: name}
		}
		list, _ := steps.([]any)
		c.nesting++
		block, last := c.block(path, list, inner)
		c.nesting--
		after[block] = last
		return block, nil
	}
	compiler.Refer = func(path string, t *template.Template, inside *step.Block) {
		c.references = append(c.references, reference{path, t, seen, after[inside]})
	}
	return compiler
}

func text(value any) string {
	s, _ := value.(string)
	return s
}
