package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/query"
)

// Totals counts events or persons per window.
func (s *Store) Totals(ctx context.Context, q query.Totals) (values []int64, state query.State, err error) {
	values = make([]int64, len(q.Windows))
	scope := query.Scope{Project: q.Project, From: q.Windows[0].From, To: q.Windows[len(q.Windows)-1].To, Where: q.Where}
	state, err = s.answer(ctx, scope, func(conn *duck.Conn, sel *selection) error {
		if q.Events != nil {
			sel.only(q.Events...)
		}
		number := windowOf(q.Windows, 0)
		sel.where = append(sel.where, number+" >= 0")
		rows, err := conn.Query(ctx, sel.grouped(q.Measure, column{"number", number}), sel.args...)
		if err != nil {
			return err
		}
		for rows.Next() {
			values[rows.Int64(0)] = rows.Int64(1)
		}
		return rows.Close()
	})
	return values, state, err
}

// windowOf returns the expression for the number of the window that a row's
// time lies in, -1 if it lies in none: a search tree. first is the number of
// the first window.
func windowOf(windows []query.Window, first int) string {
	if len(windows) == 1 {
		return fmt.Sprintf("CASE WHEN e.ts >= %d AND e.ts < %d THEN %d::BIGINT ELSE -1 END", windows[0].From, windows[0].To, first)
	}
	middle := len(windows) / 2
	return fmt.Sprintf("CASE WHEN e.ts < %d THEN %s ELSE %s END",
		windows[middle].From, windowOf(windows[:middle], first), windowOf(windows[middle:], first+middle))
}
