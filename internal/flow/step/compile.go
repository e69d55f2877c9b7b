package step

import (
	"errors"
	"fmt"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// Compiler is what a type is given to compile a step.
type Compiler struct {
	// Path is where the step is in the definition, like "steps[0]".
	Path string
	// Members are the step's members, as [template.Decode] reads them.
	Members map[string]any
	// Step is the step as far as it is compiled; a type may set Inner and Most.
	Step *Step
	// Blocks compiles the steps of an inner block.
	Blocks func(path string, steps any) (*Block, error)
	// Names are what the type adds to the scope of its inner blocks, beside the
	// steps; it sets them before it calls Blocks or Inside.
	Names []string
	// Refer is told of every template, so that what it refers to can be
	// checked. inside is nil, or the block whose steps the template sees as
	// well, and with them Names. Refer may be nil.
	Refer func(path string, t *template.Template, inside *Block)
}

// Template compiles a member: any JSON whose texts may hold expressions. An
// absent member is nil.
func (c *Compiler) Template(name string) (*template.Template, error) {
	value, ok := c.Members[name]
	if !ok {
		return nil, nil //nolint:nilnil // an absent member is no error
	}
	return c.Inside(c.Path+"."+name, value, nil)
}

// Inside compiles a value that sees what the step itself sees, and if block is
// not nil also what the steps of that block have given, and Names.
func (c *Compiler) Inside(path string, value any, block *Block) (*template.Template, error) {
	t, err := template.Compile(value)
	if at, ok := errors.AsType[*template.Error](err); ok {
		return nil, Refuse(path+at.Path, "%v", at.Err)
	}
	if err != nil {
		return nil, Refuse(path, "%v", err)
	}
	if c.Refer != nil {
		c.Refer(path, t, block)
	}
	return t, nil
}

// Join returns what is wrong with several parts, nil if nothing is. An error
// that is no [*Issues] is returned as it is.
func Join(errs ...error) error {
	all := &Issues{}
	for _, err := range errs {
		if err == nil {
			continue
		}
		issues, ok := err.(*Issues) //nolint:errorlint // it is never wrapped
		if !ok {
			return err
		}
		all.List = append(all.List, issues.List...)
	}
	if len(all.List) == 0 {
		return nil
	}
	return all
}

// Quiet is implemented by types whose steps never call anything: such steps
// have neither retries nor on_interrupt.
type Quiet interface {
	Type
	// Quiet does nothing.
	Quiet()
}

// Issue is one thing that is wrong with a definition.
type Issue struct {
	// Path is where: "steps[0].model", or "" for the whole.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Issues are what is wrong with a definition.
type Issues struct{ List []Issue } //nolint:errname // it is a list of them

func (e *Issues) Error() string {
	texts := make([]string, len(e.List))
	for i, one := range e.List {
		texts[i] = one.Path + ": " + one.Message
	}
	return strings.Join(texts, "; ")
}

// Refuse returns one issue.
func Refuse(path, format string, args ...any) *Issues {
	return &Issues{List: []Issue{{Path: path, Message: fmt.Sprintf(format, args...)}}}
}
