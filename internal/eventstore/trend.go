package eventstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/query"
)

var _ query.Store = (*Store)(nil)

// Trend counts events or persons per bucket.
func (s *Store) Trend(ctx context.Context, q query.Trend) (points []query.Point, state query.State, err error) {
	state, err = s.answer(ctx, q.Scope, func(conn *duck.Conn, sel *selection) error {
		event := "''"
		if q.Events != nil {
			sel.only(q.Events...)
			event = "e.event"
		}
		key, err := sel.bucketKey(ctx, conn, q.Calendar)
		if err != nil {
			return err
		}
		statement := sel.grouped(q.Measure, column{"event", event}, column{"key", key})
		rows, err := conn.Query(ctx, statement, sel.args...)
		if err != nil {
			return err
		}
		for rows.Next() {
			points = append(points, query.Point{Event: rows.Text(0), Key: rows.Int64(1), Value: rows.Int64(2)})
		}
		return rows.Close()
	})
	return points, state, err
}

// column is an expression and the name it goes by.
type column struct{ name, expression string }

// grouped returns a statement for the measure, as value, of each group of the
// columns. Persons are made distinct before they are grouped: DuckDB does that
// in two thirds of the time of count(DISTINCT …).
func (s *selection) grouped(m query.Measure, columns ...column) string {
	var names, list, ordinals []string
	for i, c := range columns {
		names = append(names, c.name)
		list = append(list, c.expression+" AS "+c.name)
		ordinals = append(ordinals, strconv.Itoa(i+1))
	}
	by := strings.Join(names, ", ")
	if m == query.Count {
		return s.sql(append(list, "count(*) AS value")...) + " GROUP BY " + strings.Join(ordinals, ", ")
	}
	list[0] = "DISTINCT " + list[0]
	return fmt.Sprintf("SELECT %s, count(*) AS value FROM (%s) GROUP BY %s", by, s.sql(append(list, s.person()+" AS who")...), by)
}

// answer runs fn on a selection of the scope, in one read transaction, and
// returns the state that it saw.
func (s *Store) answer(ctx context.Context, scope query.Scope, fn func(*duck.Conn, *selection) error) (query.State, error) {
	var state query.State
	err := s.read(ctx, func(conn *duck.Conn, mark Mark) error {
		state = query.State{Position: mark.Position, Received: mark.Received}
		sel, err := newSelection(ctx, conn, scope)
		if err != nil {
			return err
		}
		return fn(conn, sel)
	})
	if err != nil {
		return query.State{}, fmt.Errorf("event store: %w", err)
	}
	return state, nil
}
