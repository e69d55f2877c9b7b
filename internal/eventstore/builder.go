package eventstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/query"
)

// selection builds the rows a question is about. Everything that a caller
// wrote is a bound parameter; the statement's text holds only what this
// package wrote.
type selection struct {
	scope  query.Scope
	args   []any
	traits map[string]string // a trait's name to the alias of its join
	joins  []string
	where  []string
	// linked says that the project has links, so that persons have to be
	// looked up.
	linked bool
	// persons says that the person of a row is needed.
	persons bool
}

// newSelection starts a selection of the scope's rows that pass its filters.
func newSelection(ctx context.Context, conn *duck.Conn, scope query.Scope) (*selection, error) {
	linked, err := scalar(ctx, conn,
		`SELECT EXISTS (SELECT 1 FROM link_spans WHERE project = ?)::BIGINT`, int64(scope.Project))
	if err != nil {
		return nil, fmt.Errorf("look for links: %w", err)
	}
	s := &selection{scope: scope, traits: map[string]string{}, linked: linked != 0}
	s.where = append(s.where,
		"e.project = "+s.arg(int64(scope.Project))+"::UINTEGER",
		"e.ts >= "+s.arg(scope.From),
		"e.ts < "+s.arg(scope.To))
	for i := range scope.Where {
		s.where = append(s.where, s.filter(&scope.Where[i]))
	}
	return s, nil
}

// arg binds a value and returns the parameter that stands for it.
func (s *selection) arg(v any) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args))
}

// only keeps the rows of the named events.
func (s *selection) only(events ...string) {
	params := make([]string, len(events))
	for i, event := range events {
		params[i] = s.arg(event)
	}
	s.where = append(s.where, "e.event IN ("+strings.Join(params, ", ")+")")
}

// person returns the expression for the number of a row's person.
func (s *selection) person() string {
	s.persons = true
	if s.linked {
		return "coalesce(s.person_user, e.person)"
	}
	return "e.person"
}

// spanJoin finds the user that an anon id's row belongs to: the spans of one
// anon id are disjoint, so a row meets at most one.
const spanJoin = ` LEFT JOIN link_spans s ON s.project = e.project AND s.person_anon = e.person AND e.ts >= s.from_ts AND e.ts < s.to_ts`

// sql returns a SELECT of the given columns. It must be called last: columns
// and filters decide which tables are joined.
func (s *selection) sql(columns ...string) string {
	var b strings.Builder
	b.WriteString("SELECT " + strings.Join(columns, ", ") + " FROM events e")
	if s.linked && s.persons {
		b.WriteString(spanJoin)
	}
	for _, join := range s.joins {
		b.WriteString(join)
	}
	b.WriteString(" WHERE " + strings.Join(s.where, " AND "))
	return b.String()
}
