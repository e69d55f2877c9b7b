package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the module's folder, seen from this package.
const root = "../.."

const module = "github.com/actionpulse/actionpulse"

// file is one Go file of the module, under whatever build tags.
type file struct {
	// path is relative to the module's folder.
	path    string
	syntax  *ast.File
	imports []string
	lines   int
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// pkg returns the folder of the file's package, as in "internal/intake".
func (f file) pkg() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// sources parses every Go file of the module once for all tests.
var sources = sync.OnceValues(func() ([]file, error) {
	var files []file
	err := walk(func(path string, content []byte) error {
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := parse(path, content)
		files = append(files, f)
		return err
	})
	return files, err
})

// walk calls fn with every file that belongs to the project, and no others:
// neither what is built nor what data folders hold.
func walk(fn func(path string, content []byte) error) error {
	tree := os.DirFS(root)
	return fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != "."
		if d.IsDir() && (hidden || slices.Contains([]string{"bin", "data", "dist", "node_modules", "testdata"}, d.Name())) {
			return fs.SkipDir
		}
		if d.IsDir() || hidden || !slices.Contains([]string{".go", ".md"}, filepath.Ext(path)) {
			return nil
		}
		content, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		return fn(path, content)
	})
}

func parse(path string, content []byte) (file, error) {
	syntax, err := parser.ParseFile(token.NewFileSet(), path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	f := file{path: path, syntax: syntax, lines: strings.Count(string(content), "\n")}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file{}, err
		}
		f.imports = append(f.imports, imported)
	}
	return f, nil
}

// all returns every Go file, or fails the test.
func all(t *testing.T) []file {
	t.Helper()
	files, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found: is the test run in its own folder?")
	}
	return files
}
