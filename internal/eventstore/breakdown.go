package eventstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/query"
)

// Breakdown counts events or persons per key.
func (s *Store) Breakdown(ctx context.Context, q query.Breakdown) (groups query.Groups, state query.State, err error) {
	state, err = s.answer(ctx, q.Scope, func(conn *duck.Conn, sel *selection) error {
		key := "e.event"
		if q.By != nil {
			key = sel.text(*q.By)
		}
		if q.Event != nil {
			sel.only(*q.Event)
		}
		all, err := listGroups(ctx, conn, sel, key, q)
		if err != nil {
			return err
		}
		groups.Listed = all.listed
		if q.Measure == query.Count {
			groups.Other = all.rest
			return nil
		}
		if all.rest > 0 {
			groups.Other, err = personsElsewhere(ctx, conn, sel, key, all.listed)
		}
		return err
	})
	return groups, state, err
}

// topGroups are the highest groups and the sum over the groups below them.
type topGroups struct {
	listed []query.Group
	rest   int64
}

func listGroups(ctx context.Context, conn *duck.Conn, sel *selection, key string, q query.Breakdown) (topGroups, error) {
	groups := sel.grouped(q.Measure, column{"key", key})
	limit := sel.arg(int64(q.Limit))
	statement := fmt.Sprintf(`WITH groups AS (%s)
		SELECT key, value, (sum(value) OVER ())::BIGINT FROM groups ORDER BY value DESC, key NULLS LAST LIMIT %s`,
		groups, limit)
	rows, err := conn.Query(ctx, statement, sel.args...)
	if err != nil {
		return topGroups{}, err
	}
	sel.args = sel.args[:len(sel.args)-1]
	var top topGroups
	for rows.Next() {
		g := query.Group{Value: rows.Int64(1)}
		if !rows.Null(0) {
			g.Key = new(rows.Text(0))
		}
		if len(top.listed) == 0 {
			top.rest = rows.Int64(2)
		}
		top.rest -= g.Value
		top.listed = append(top.listed, g)
	}
	return top, rows.Close()
}

// personsElsewhere counts the persons that have rows with keys not listed.
func personsElsewhere(ctx context.Context, conn *duck.Conn, sel *selection, key string, listed []query.Group) (int64, error) {
	var params []string
	unlisted := key + " IS NULL"
	for _, g := range listed {
		if g.Key == nil {
			unlisted = "false"
			continue
		}
		params = append(params, sel.arg(*g.Key))
	}
	if len(params) > 0 {
		unlisted = fmt.Sprintf("coalesce(%s NOT IN (%s), %s)", key, strings.Join(params, ", "), unlisted)
	} else {
		unlisted = fmt.Sprintf("(%s IS NOT NULL OR %s)", key, unlisted)
	}
	sel.where = append(sel.where, unlisted)
	return scalar(ctx, conn, sel.sql("count(DISTINCT "+sel.person()+")"), sel.args...)
}
