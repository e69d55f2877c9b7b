package template

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
)

const (
	// maxSource is how long an expression may be; a parser that descends needs
	// the stack for as many levels.
	maxSource = 8192
	// maxNodes is how many operations, names and values it may hold.
	maxNodes = 2000
	// maxExpressions is how many a template may hold.
	maxExpressions = 2000
	// maxMessage is how long what the library says may be: it may repeat values.
	maxMessage = 120
)

// environment is what expressions are checked against.
var environment = types.Map{
	nameInput: types.Any, nameContext: types.Any, nameSteps: types.Any, nameItem: types.Any, nameIndex: types.Any, nameRun: types.Any,
}

func (t *Template) compileExpression(source string) (compiled node, err error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("an expression has at most %d bytes", maxSource)
	}
	if t.count++; t.count > maxExpressions {
		return nil, fmt.Errorf("there are at most %d expressions", maxExpressions)
	}
	if strings.TrimSpace(source) == "" {
		return nil, errors.New("the expression is empty")
	}
	// The parser is a library's: what makes it fall over is a bad expression.
	defer func() {
		if recover() != nil {
			compiled, err = nil, errors.New("the expression cannot be read")
		}
	}()
	w := &rewriter{t: t}
	program, err := expr.Compile(source, w.options()...)
	if err == nil || w.err != nil {
		err = w.err
	}
	if err != nil {
		return nil, plainError(err)
	}
	return &expression{source: source, program: program}, nil
}

func (w *rewriter) options() []expr.Option {
	options := []expr.Option{
		expr.Env(environment), expr.AsAny(), expr.MaxNodes(maxNodes),
		// Nothing runs before it can be charged.
		expr.Optimize(false),
		expr.Patch(w), expr.Patch(visitor(w.leftover)),
	}
	for name, f := range functions {
		options = append(options, expr.Function(" "+name, f.call))
	}
	return options
}

// visitor is a function that visits.
type visitor func(at *ast.Node)

// Visit implements [ast.Visitor].
func (v visitor) Visit(at *ast.Node) { v(at) }

// leftover refuses steps without an id, once those with one were replaced.
func (w *rewriter) leftover(at *ast.Node) {
	if n, ok := (*at).(*ast.IdentifierNode); ok && n.Value == nameSteps {
		w.refuse("steps must be followed by the id of a step, like steps.say")
	}
}

func (e *expression) eval(r *run) (value any, err error) {
	if err := r.spend(1); err != nil {
		return nil, err
	}
	scope := map[string]any{nameRun: r}
	for _, name := range []string{nameInput, nameContext, nameItem, nameIndex} {
		scope[name] = r.scope.find(name)
	}
	value, err = expr.Run(e.program, scope)
	if err == nil {
		value, err = r.normal(value, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("${%s}: %w", shorten(e.source), plainError(err))
	}
	return value, nil
}

// plainError takes the message of the library without the picture that it draws.
func plainError(err error) error {
	var drawn *file.Error
	if !errors.As(err, &drawn) {
		return err
	}
	if drawn.Prev != nil && (errors.Is(drawn.Prev, errCost) || errors.Is(drawn.Prev, errDepth)) {
		return drawn.Prev
	}
	message := strings.ReplaceAll(drawn.Message, "interface conversion: interface {} is", "the value is")
	message = cut(strings.ReplaceAll(message, "interface {}", "value"), maxMessage)
	return fmt.Errorf("%s (column %d)", message, drawn.Column+1)
}
