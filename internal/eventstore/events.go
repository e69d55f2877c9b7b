package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/query"
)

// Events returns the newest events first, one more than the limit if there are
// more.
func (s *Store) Events(ctx context.Context, q query.Events) (events []query.Event, state query.State, err error) {
	state, err = s.answer(ctx, q.Scope, func(conn *duck.Conn, sel *selection) error {
		s.narrow(sel, q)
		page := sel.sql("e.seq AS seq") + " ORDER BY e.ts DESC, e.seq DESC LIMIT " + sel.arg(int64(q.Limit)+1)
		rows, err := conn.Query(ctx, fmt.Sprintf(eventsQuery, page), sel.args...)
		if err != nil {
			return err
		}
		for rows.Next() {
			events = append(events, readEvent(rows))
		}
		return rows.Close()
	})
	return events, state, err
}

// narrow adds the conditions that only a list of events has.
func (s *Store) narrow(sel *selection, q query.Events) {
	if q.Event != nil {
		sel.only(*q.Event)
	}
	if q.Person != nil {
		user := s.numbers.User(q.Project, *q.Person)
		sel.where = append(sel.where, fmt.Sprintf("(%s = %s OR e.anon_id = %s)",
			sel.person(), sel.arg(user), sel.arg(*q.Person)))
	}
	if q.Before != nil {
		ts, seq := sel.arg(q.Before.TS), sel.arg(int64(q.Before.Seq))
		sel.where = append(sel.where, fmt.Sprintf("e.ts <= %s AND (e.ts < %s OR e.seq < %s)", ts, ts, seq))
	}
}

// eventsQuery finds the page by its narrow columns first and reads the wide
// ones for its few rows only.
const eventsQuery = `
SELECT e.seq, e.ts, e.received, e.client_ts, e.ts_status, e.event, e.anon_id, e.user_id, e.session_id,
	e.key_kind, e.event_id, e.properties, e.context, coalesce(e.user_id, s.user_id, e.anon_id)
FROM events e SEMI JOIN (%s) page ON e.seq = page.seq` + spanJoin + `
ORDER BY e.ts DESC, e.seq DESC`

func readEvent(rows *duck.Rows) query.Event {
	e := query.Event{
		Cursor:     query.Cursor{Seq: uint64(rows.Int64(0)), TS: rows.Int64(1)},
		Received:   rows.Int64(2),
		TSStatus:   rows.Uint8(4),
		Event:      rows.Text(5),
		AnonID:     rows.Text(6),
		UserID:     rows.Text(7),
		SessionID:  rows.Text(8),
		KeyKind:    rows.Uint8(9),
		EventID:    rows.UUID(10),
		Properties: rows.Bytes(11),
		Context:    rows.Bytes(12),
		Person:     rows.Text(13),
	}
	if !rows.Null(3) {
		e.ClientTS = rows.Int64(3)
	}
	return e
}
