package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// maxLines is how long a file may be. Most are half of it.
const maxLines = 500

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, f := range all(t) {
		if f.lines > maxLines && !ast.IsGenerated(f.syntax) {
			t.Errorf("%s has %d lines, more than %d: split it", f.path, f.lines, maxLines)
		}
	}
}

// TestTestsNeitherSleepNorSkip: a test that sleeps is slow and fails on a slow
// machine; a test that is skipped says nothing and looks green.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	t.Parallel()
	for _, f := range all(t) {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch name := calledName(call); {
			case name == "time.Sleep" && (f.isTest() || within(f.path, "internal/lab/faultproxy")):
				t.Errorf("%s calls time.Sleep: wait for a signal, or use testing/synctest", f.path)
			case f.isTest() && skips.MatchString(name):
				t.Errorf("%s calls %s: a test passes or fails", f.path, name)
			}
			return true
		})
	}
}

var skips = regexp.MustCompile(`^(t|b|f|tb)\.(Skip|Skipf|SkipNow)$`)

// calledName returns "x.F" for a call of that form.
func calledName(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + selector.Sel.Name
}

func TestPackageNamesSayWhatIsInside(t *testing.T) {
	t.Parallel()
	for _, f := range all(t) {
		switch name := strings.TrimSuffix(f.syntax.Name.Name, "_test"); name {
		case "util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base":
			t.Errorf("%s: a package named %s holds anything", f.path, name)
		}
	}
}
