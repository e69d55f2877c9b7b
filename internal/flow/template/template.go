// Package template evaluates the expressions in a flow's definition: texts with
// ${…} anywhere in a JSON value. It knows nothing of steps, and an expression
// can reach nothing but its scope: no clock, no randomness, no files, no
// network, and bounded memory.
//
// Invariants:
//   - the same template in the same scope has the same value, always;
//   - a value is the same before and after [Encode] and [Decode];
//   - every expression ends: what it reads and makes is counted, and a count
//     that is used up is an error;
//   - a value in a scope is never changed by an expression, nor shared with
//     what an expression gives back.
package template

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/vm"
)

// maxEncoded is how long what a template gives may be as JSON.
const maxEncoded = 1 << 20

// Template is a JSON value whose texts may hold expressions, compiled.
type Template struct {
	root node
	// steps and names are what the expressions refer to, and count is how many
	// there are.
	steps, names map[string]bool
	count        int
}

// node is a part of a template; in the end, a value.
type node interface {
	eval(r *run) (any, error)
}

type (
	literal struct{ value any }
	object  map[string]node
	list    []node
	// text is literals and expressions one after the other.
	text []node
	// expression is what stands within ${ and }.
	expression struct {
		source  string
		program *vm.Program
	}
)

// Compile compiles a value as [Decode] reads it. The error says what is wrong
// and where in the expression; it is an [*Error] if the value is not a text. In a text, ${ begins an expression, which } ends,
// and $${ stands for ${. Names of members hold no expressions.
func Compile(value any) (*Template, error) {
	t := &Template{steps: map[string]bool{}, names: map[string]bool{}}
	root, err := t.compile(value, 0)
	if err != nil {
		return nil, err
	}
	t.root = root
	return t, nil
}

// Eval evaluates the template. A text that is one expression keeps the type of
// its value; in other texts values are written as text, objects and lists as
// JSON, and null as nothing.
//
// What takes long is evaluated one after the other in the whole process, so
// that it leaves time and memory to everybody else; what does not never waits.
// All evaluations in a scope and those within it share a budget.
func (t *Template) Eval(s *Scope) (any, error) {
	value, exceeded, err := t.within(s, lightCost)
	if !exceeded {
		return value, err
	}
	turns <- struct{}{}
	defer func() { <-turns }()
	value, _, err = t.within(s, maxCost)
	return value, err
}

// within evaluates the template at no more than a cost, and says whether that
// was too little.
func (t *Template) within(s *Scope, cost int) (value any, exceeded bool, err error) {
	left := int(min(int64(cost), s.budget.Load()))
	r := &run{scope: s, left: left}
	value, err = t.eval(r)
	s.budget.Add(int64(r.left - left))
	if err != nil && s.budget.Load() <= 0 {
		return nil, false, errBudget
	}
	return value, r.exceeded, err
}

func (t *Template) eval(r *run) (any, error) {
	value, err := t.root.eval(r)
	if err != nil {
		return nil, err
	}
	if err := CheckSize(value); err != nil {
		return nil, err
	}
	return value, nil
}

// Literal returns the value if the template holds no expression.
func (t *Template) Literal() (any, bool) {
	one, ok := t.root.(literal)
	return one.value, ok
}

// Steps returns the ids of the steps that the expressions refer to, in order.
func (t *Template) Steps() []string { return slices.Sorted(maps.Keys(t.steps)) }

// Names returns the other names that the expressions refer to, in order: input,
// context, item, index.
func (t *Template) Names() []string { return slices.Sorted(maps.Keys(t.names)) }

// Count returns how many expressions there are: each takes some kilobytes.
func (t *Template) Count() int { return t.count }

func (t *Template) compile(value any, depth int) (node, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	switch v := value.(type) {
	case string:
		return t.compileText(v)
	case []any:
		return t.compileList(v, depth)
	case map[string]any:
		return t.compileObject(v, depth)
	default:
		return literal{value}, nil
	}
}

func (t *Template) compileList(values []any, depth int) (node, error) {
	nodes, fixed := make(list, len(values)), true
	for i, one := range values {
		n, err := t.compile(one, depth+1)
		if err != nil {
			return nil, within("["+strconv.Itoa(i)+"]", err)
		}
		nodes[i] = n
		_, isLiteral := n.(literal)
		fixed = fixed && isLiteral
	}
	if !fixed {
		return nodes, nil
	}
	plain := make([]any, len(nodes))
	for i, n := range nodes {
		plain[i] = n.(literal).value
	}
	return literal{plain}, nil
}

func (t *Template) compileObject(values map[string]any, depth int) (node, error) {
	nodes, fixed := make(object, len(values)), true
	for _, name := range slices.Sorted(maps.Keys(values)) {
		n, err := t.compile(values[name], depth+1)
		if err != nil {
			return nil, within("."+name, err)
		}
		nodes[name] = n
		_, isLiteral := n.(literal)
		fixed = fixed && isLiteral
	}
	if !fixed {
		return nodes, nil
	}
	plain := make(map[string]any, len(nodes))
	for name, n := range nodes {
		plain[name] = n.(literal).value
	}
	return literal{plain}, nil
}

func (t *Template) compileText(source string) (node, error) {
	if !utf8.ValidString(source) {
		return nil, errUTF8
	}
	parts, err := split(source)
	if err != nil {
		return nil, err
	}
	nodes := make(text, len(parts))
	for i, p := range parts {
		if !p.isExpression {
			nodes[i] = literal{p.text}
			continue
		}
		if nodes[i], err = t.compileExpression(p.text); err != nil {
			return nil, fmt.Errorf("${%s}: %w", shorten(p.text), err)
		}
	}
	switch len(nodes) {
	case 0:
		return literal{""}, nil
	case 1:
		return nodes[0], nil
	default:
		return nodes, nil
	}
}

// eval copies the value: who is given it may change it.
func (l literal) eval(*run) (any, error) { return clone(l.value), nil }

func clone(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = clone(one)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, one := range v {
			out[name] = clone(one)
		}
		return out
	default:
		return value
	}
}

func (l list) eval(r *run) (any, error) {
	values := make([]any, len(l))
	for i, n := range l {
		v, err := n.eval(r)
		if err != nil {
			return nil, within("["+strconv.Itoa(i)+"]", err)
		}
		values[i] = v
	}
	return values, nil
}

func (o object) eval(r *run) (any, error) {
	values := make(map[string]any, len(o))
	for _, name := range slices.Sorted(maps.Keys(o)) {
		v, err := o[name].eval(r)
		if err != nil {
			return nil, within("."+name, err)
		}
		values[name] = v
	}
	return values, nil
}

func (t text) eval(r *run) (any, error) {
	var out strings.Builder
	for _, n := range t {
		v, err := n.eval(r)
		if err != nil {
			return nil, err
		}
		written, err := asText(v)
		if err != nil {
			return nil, err
		}
		out.WriteString(written)
		if out.Len() > maxEncoded {
			return nil, errSize
		}
	}
	return out.String(), nil
}

// Error is an error and where in the value it is.
type Error struct {
	// Path is like ".a[1]".
	Path string
	Err  error
}

func (e *Error) Error() string { return strings.TrimPrefix(e.Path, ".") + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// within puts a piece in front of the path of an error.
func within(piece string, err error) error {
	if inner, ok := err.(*Error); ok { //nolint:errorlint // only the outermost is extended
		return &Error{piece + inner.Path, inner.Err}
	}
	return &Error{piece, err}
}

// shorten keeps a source readable in a message, which is one line.
func shorten(source string) string { return cut(source, 60) }

func cut(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
