// Package template evaluates the expressions in a flow's definition: texts with
// ${…} anywhere in a JSON value. It knows nothing of steps, and an expression
// can reach nothing but its scope: no clock, no randomness, no files, no
// network, and bounded memory.
package template

// Template is a JSON value whose texts may hold expressions, compiled.
type Template struct{}

// Compile compiles a value as [Decode] reads it. The error says what is wrong
// and where in the expression.
func Compile(value any) (*Template, error) { return &Template{}, nil }

// Eval evaluates the template. A text that is one expression keeps the type of
// its value; in other texts values are written as text, objects and lists as
// JSON.
func (t *Template) Eval(s *Scope) (any, error) { return nil, nil }

// Literal returns the value if the template holds no expression.
func (t *Template) Literal() (any, bool) { return nil, false }

// Scope is what expressions see: input, context, steps, and names that blocks
// add, such as item and index.
type Scope struct{}

// NewScope returns a scope without steps. The values are as [Decode] reads them.
func NewScope(input, context any) *Scope { return &Scope{} }

// Inner returns a scope that sees what s sees, and to which steps and names can
// be added without s seeing them.
func (s *Scope) Inner() *Scope { return s }

// Name adds a name.
func (s *Scope) Name(name string, value any) {}

// SetStep adds the value of a step: steps.<id>. A nil map is null.
func (s *Scope) SetStep(id string, value map[string]any) {}

// Decode reads JSON: objects as map[string]any, lists as []any, whole numbers
// that fit as int64, others as float64.
func Decode(data []byte) (any, error) { return nil, nil }

// Encode writes what Decode has read, or what an expression has made of it, as
// JSON. What JSON cannot hold is an error.
func Encode(value any) ([]byte, error) { return nil, nil }
