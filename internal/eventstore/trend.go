package eventstore

import (
	"context"
	"fmt"

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
		statement := sel.sql(event, key, sel.measure(q.Measure)) + " GROUP BY 1, 2"
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

// measure returns the aggregate for a measure.
func (s *selection) measure(m query.Measure) string {
	if m == query.Persons {
		return "count(DISTINCT " + s.person() + ")"
	}
	return "count(*)"
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
