package step

import (
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
}

// Template compiles a member: any JSON whose texts may hold expressions. An
// absent member is nil.
func (c *Compiler) Template(name string) (*template.Template, error) {
	value, ok := c.Members[name]
	if !ok {
		return nil, nil //nolint:nilnil // an absent member is no error
	}
	t, err := template.Compile(value)
	if err != nil {
		return nil, Refuse(c.Path+"."+name, "%v", err)
	}
	return t, nil
}

// Issue is one thing that is wrong with a definition.
type Issue struct {
	// Path is where: "steps[0].model", or "" for the whole.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Issues are what is wrong with a definition.
type Issues struct{ List []Issue }

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
