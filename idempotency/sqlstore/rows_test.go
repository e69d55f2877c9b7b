package sqlstore_test

import (
	"slices"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// Rows are spread over statements about one, two, four … of them, in their
// order, and none is lost.
func TestRows(t *testing.T) {
	t.Parallel()
	r := sqlstore.Rows{Text: "INSERT INTO t VALUES {rows} RETURNING $1", Each: "($1, ?, ?, 'x')", Shared: []any{"now"}}
	for i := range 7 {
		r.Args = append(r.Args, []any{i, -i})
	}
	var texts []string
	var args []any
	for _, one := range r.Statements(2) {
		texts, args = append(texts, one.Text), append(args, one.Args...)
	}
	two := "INSERT INTO t VALUES ($1, $2, $3, 'x'), ($1, $4, $5, 'x') RETURNING $1"
	if want := []string{two, two, two, "INSERT INTO t VALUES ($1, $2, $3, 'x') RETURNING $1"}; !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	if want := []any{"now", 0, 0, 1, -1, "now", 2, -2, 3, -3, "now", 4, -4, 5, -5, "now", 6, -6}; !slices.Equal(args, want) {
		t.Errorf("%v", args)
	}
	if got := len(r.Statements(64)); got != 3 {
		t.Errorf("seven rows are %d statements, want 4, 2 and 1", got)
	}
	r.Args = nil
	if got := r.Statements(64); got != nil {
		t.Errorf("no rows are %v", got)
	}
}
