package template

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
)

// The names that expressions may use.
const (
	nameInput   = "input"
	nameContext = "context"
	nameSteps   = "steps"
	nameItem    = "item"
	nameIndex   = "index"
)

// nameRun is where an expression finds its run. No expression can write it.
const nameRun = " run"

// allowed are the functions that the library runs as they are, once what they
// are given was charged.
var allowed = setOf(
	"all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "count", "sum", "groupBy", "sortBy", "reduce",
	"len", "type", "abs", "ceil", "floor", "round", "int", "float", "trim", "trimPrefix", "trimSuffix", "upper", "lower", "split", "splitAfter",
	"indexOf", "lastIndexOf", "hasPrefix", "hasSuffix", "max", "min", "mean", "median", "toBase64", "fromBase64", "first", "last", "take",
	"reverse", "concat", "flatten", "sort", "bitand", "bitor", "bitxor", "bitnand", "bitnot", "bitshl", "bitshr", "bitushr",
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// rewriter walks through an expression from its leaves to its root. It refuses
// what could leave the scope, puts functions of this package in the place of
// those that could do without bound, and has everything charged that is read.
type rewriter struct {
	t   *Template
	err error
}

func (w *rewriter) refuse(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// Visit implements [ast.Visitor].
func (w *rewriter) Visit(at *ast.Node) {
	switch n := (*at).(type) {
	case *ast.IdentifierNode:
		w.identifier(n)
	case *ast.MemberNode:
		w.member(at, n)
	case *ast.BinaryNode:
		w.binary(at, n)
	case *ast.SliceNode:
		w.slice(at, n)
	case *ast.BuiltinNode:
		w.builtin(at, n)
	case *ast.CallNode:
		w.refuse("there is no function %s", shorten(n.Callee.String()))
	case *ast.PredicateNode:
		n.Node = w.charged(n.Node)
	case *ast.BytesNode:
		w.refuse("bytes are no JSON")
	}
}

func (w *rewriter) identifier(n *ast.IdentifierNode) {
	switch n.Value {
	case nameInput, nameContext, nameItem, nameIndex:
		w.t.names[n.Value] = true
	default:
		if _, ok := builtin.Index[n.Value]; ok || n.Value == "$env" {
			w.refuse("unknown name %s", n.Value)
		}
	}
}

func (w *rewriter) member(at *ast.Node, n *ast.MemberNode) {
	if name, ok := n.Node.(*ast.IdentifierNode); ok && name.Value == nameSteps {
		id, ok := n.Property.(*ast.StringNode)
		if !ok {
			w.refuse("steps must be followed by the id of a step, like steps.say")
			return
		}
		w.t.steps[id.Value] = true
		ast.Patch(at, call("step", id))
		return
	}
	ast.Patch(at, call("get", n.Node, n.Property))
}

func (w *rewriter) binary(at *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "and", "&&", "or", "||", "??":
		// What is not needed must not be evaluated, and costs nothing.
	case "+", "-", "*", "..", "matches":
		ast.Patch(at, call(n.Operator, n.Left, n.Right))
	default:
		n.Left, n.Right = w.charged(n.Left), w.charged(n.Right)
	}
}

func (w *rewriter) slice(at *ast.Node, n *ast.SliceNode) {
	from, to := n.From, n.To
	if from == nil {
		from = &ast.NilNode{}
	}
	if to == nil {
		to = &ast.NilNode{}
	}
	ast.Patch(at, call("slice", n.Node, from, to))
}

func (w *rewriter) builtin(at *ast.Node, n *ast.BuiltinNode) {
	if _, ok := functions[n.Name]; ok {
		ast.Patch(at, call(n.Name, n.Arguments...))
		return
	}
	if !allowed[n.Name] {
		w.refuse("the function %s is not available: its value would depend on more than the scope", n.Name)
		return
	}
	for i, one := range n.Arguments {
		if _, ok := one.(*ast.PredicateNode); !ok {
			n.Arguments[i] = w.charged(one)
		}
	}
}

// charged wraps a node so that what it gives is charged.
func (w *rewriter) charged(n ast.Node) ast.Node {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode:
		return n
	}
	return call("charge", n)
}

// call calls a function of this package.
func call(name string, args ...ast.Node) ast.Node {
	return &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: " " + name},
		Arguments: append([]ast.Node{&ast.IdentifierNode{Value: nameRun}}, args...),
	}
}
