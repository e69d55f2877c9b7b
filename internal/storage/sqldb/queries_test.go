package sqldb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQueriesFitBothSchemas prepares every query on both engines: the code is
// generated from one schema only.
func TestQueriesFitBothSchemas(t *testing.T) {
	t.Parallel()
	queries := readQueries(t)
	for engine, d := range map[string]*DB{"SQLite": newSQLite(t), "PostgreSQL": newPostgres(t)} {
		for name, text := range queries {
			statement, err := d.writer.PrepareContext(t.Context(), text)
			if err != nil {
				t.Errorf("%s: %s: %v", engine, name, err)
				continue
			}
			if err := statement.Close(); err != nil {
				t.Errorf("%s: %s: %v", engine, name, err)
			}
		}
	}
}

// TestNoSlices: sqlc.slice compiles for PostgreSQL, then returns wrong rows on
// SQLite without an error.
func TestNoSlices(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "sqlc.slice") {
			t.Errorf("%s uses sqlc.slice", f)
		}
	}
}

// readQueries returns the text of each generated query by its name, as sqlc
// has written it into the Go files: between back quotes, after "-- name: ".
func readQueries(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.sql.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(source), "`-- name: ")[1:] {
			text, _, closed := strings.Cut(part, "`")
			name, _, named := strings.Cut(text, " ")
			if !closed || !named {
				t.Fatalf("%s: a query cannot be read: %.60s", f, part)
			}
			all[name] = "-- name: " + text
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %d queries found", len(all))
	}
	return all
}
