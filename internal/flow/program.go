// Package flow owns the definitions of flows: how they are written, what is
// wrong with one, what it may cost, and the versions that were published. How
// a definition is run is package execution's, and what a step does is that of
// the packages below step.
//
// Invariants:
//   - a definition is compiled from its canonical form only, and the same form
//     always compiles to the same program;
//   - what the schema that is served refuses is refused, and all that is wrong
//     is said at once, each with its path;
//   - every amount is an exact integer of micro-units, never a float;
//   - nothing that a definition refers to is loaded from anywhere else.
package flow

import (
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// Program is a definition that was compiled. It never changes and may be shared.
type Program struct {
	Steps *step.Block
	// Output is never nil: without an output it gives null.
	Output *template.Template
	// Price is nil if the flow is free.
	Price  *Price
	Limits Limits
	Trace  Trace
	// Count is how many steps there are, those in inner blocks included.
	Count int

	input *inputSchema
	byID  map[string]*step.Step
	hold  Amount
}

// Limits bound an execution.
type Limits struct {
	Timeout time.Duration
	// Budget is the most that tokens may cost.
	Budget Amount
}

// DefaultTimeout and MaxTimeout are of a whole execution.
const (
	DefaultTimeout = 5 * time.Minute
	MaxTimeout     = 24 * time.Hour
)

// Trace says what is kept of the calls that an execution makes.
type Trace struct {
	// Record says whether requests and responses are kept.
	Record bool
	// Redact are paths like input.people[*].email whose values are blanked.
	Redact []string
}

// Step returns a step by its id, also one of an inner block; nil if there is
// none.
func (p *Program) Step(id string) *step.Step { return p.byID[id] }

// CheckInput returns nil or an [*InputError].
func (p *Program) CheckInput(input any) error { return p.input.check(input) }

// InputError says what is wrong with an input. It repeats no value.
type InputError struct {
	// Path is where: items[2].name, or "" for the whole.
	Path    string
	Message string
}

func (e *InputError) Error() string {
	if e.Path == "" {
		return "the input is not valid: " + e.Message
	}
	return fmt.Sprintf("the input is not valid: %s: %s", e.Path, e.Message)
}
