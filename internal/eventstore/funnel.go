package eventstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/query"
)

// Funnel returns how many persons reached each step. DuckDB finds the rows of
// the steps and sorts them by person and time; one pass over them decides.
func (s *Store) Funnel(ctx context.Context, q query.Funnel) (persons []int64, state query.State, err error) {
	state, err = s.answer(ctx, q.Scope, func(conn *duck.Conn, sel *selection) error {
		steps := sel.steps(q.Steps)
		sel.where = append(sel.where, "("+strings.Join(steps, " OR ")+")")
		statement := sel.sql(sel.person()+" AS who", "e.ts AS ts", bitmask(steps)+" AS steps") + " ORDER BY who, ts"
		rows, err := conn.Stream(ctx, statement, sel.args...)
		if err != nil {
			return err
		}
		walk := query.NewFunnelWalk(len(q.Steps), q.Window)
		for rows.Next() {
			walk.Add(rows.Int64(0), rows.Int64(1), rows.Uint32(2))
		}
		persons = walk.Persons()
		return rows.Close()
	})
	return persons, state, err
}

// steps returns the condition of each step.
func (s *selection) steps(steps []query.Step) []string {
	conditions := make([]string, len(steps))
	for i := range steps {
		all := []string{"e.event = " + s.arg(steps[i].Event)}
		for j := range steps[i].Where {
			all = append(all, s.filter(&steps[i].Where[j]))
		}
		conditions[i] = "(" + strings.Join(all, " AND ") + ")"
	}
	return conditions
}

// bitmask returns the expression for a UINTEGER with a bit for each condition
// that holds, the first lowest.
func bitmask(conditions []string) string {
	bits := make([]string, len(conditions))
	for i, condition := range conditions {
		bits[i] = fmt.Sprintf("(CASE WHEN %s THEN %d ELSE 0 END)", condition, 1<<i)
	}
	return "(" + strings.Join(bits, " + ") + ")::UINTEGER"
}
