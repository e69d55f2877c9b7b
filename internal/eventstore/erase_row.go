package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/identity"
)

// eraseRows deletes the person's event rows and keeps their claims.
func (b *batch) eraseRows(ctx context.Context, e erasure, taken map[anon][]identity.Span) error {
	if e.person.AnonID != "" {
		return b.deleteRows(ctx, e, rowsWhere{condition: `events.anon_id = $3`, args: []any{e.person.AnonID}})
	}
	err := b.deleteRows(ctx, e, rowsWhere{
		condition: `events.person = $3 AND events.user_id = $4`,
		args:      []any{b.store.number(e.project, e.person), e.person.UserID},
	})
	if err != nil || len(taken) == 0 {
		return err
	}
	if err := b.store.fillTaken(ctx, taken); err != nil {
		return err
	}
	return b.deleteRows(ctx, e, rowsWhere{
		from:      `taken`,
		condition: `events.user_id IS NULL AND events.person = taken.person_anon AND events.ts >= taken.from_ts AND events.ts < taken.to_ts`,
	})
}

// rowsWhere says which rows are meant, beyond project and position. from are
// further tables, args the parameters from $3 on.
type rowsWhere struct {
	from, condition string
	args            []any
}

// deleteRows deletes rows and keeps the claims of those whose window has not
// passed.
func (b *batch) deleteRows(ctx context.Context, e erasure, where rowsWhere) error {
	conn := b.store.writer
	args := append([]any{int64(e.project), int64(e.seq)}, where.args...)
	condition := `events.project = $1 AND events.seq < $2 AND ` + where.condition
	if err := keepClaims(ctx, conn, where.from, condition, append(args, e.since)); err != nil {
		return err
	}
	using := ""
	if where.from != "" {
		using = " USING " + where.from
	}
	deleted, err := conn.Exec(ctx, `DELETE FROM events`+using+` WHERE `+condition, args...)
	b.rows -= deleted
	return err
}

// keepClaims copies the claims of rows that are about to be deleted. The last
// argument is the receipt time from which on claims are alive.
func keepClaims(ctx context.Context, conn *duck.Conn, from, condition string, args []any) error {
	if from != "" {
		from = ", " + from
	}
	_, err := conn.Exec(ctx, fmt.Sprintf(`
		INSERT INTO erased_claims
		SELECT events.seq, events.project, events.key_kind, events.event_id, events.received, events.fingerprint
		FROM events%s WHERE %s AND events.claimed AND events.received >= $%d`, from, condition, len(args)), args...)
	return err
}

// fillTaken fills the writer's private table.
func (s *Store) fillTaken(ctx context.Context, taken map[anon][]identity.Span) error {
	if _, err := s.writer.Exec(ctx, `TRUNCATE taken`); err != nil {
		return err
	}
	a, err := takenAppender(s.writer)
	if err != nil {
		return err
	}
	defer a.Close()
	for of, spans := range taken {
		for _, span := range spans {
			a.Int64(0, of.person)
			a.Int64(1, span.From)
			a.Int64(2, span.To)
			if err := a.EndRow(); err != nil {
				return err
			}
		}
	}
	return a.Flush()
}
