package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/query"
)

// manyOffsets is how many changes of the clocks an expression holds before it
// is worth asking which of them the data can meet.
const manyOffsets = 64

// bucketKey returns the expression for the calendar key of a row's time.
func (s *selection) bucketKey(ctx context.Context, conn *duck.Conn, c query.Calendar) (string, error) {
	offsets := c.Offsets(s.scope.From, s.scope.To)
	if len(offsets) > manyOffsets {
		from, to, err := s.dataRange(ctx, conn)
		if err != nil {
			return "", err
		}
		offsets = c.Offsets(from, to)
	}
	ahead := aheadOf(offsets)
	local := "(e.ts + " + ahead + ")"
	switch c.Interval {
	case query.Hour:
		return fmt.Sprintf("(%s - %s)", floorTo(local, 3_600_000), ahead), nil
	case query.Day:
		return floorTo(local, 86_400_000), nil
	case query.Week:
		const monday = 4 * 86_400_000 // of the epoch's week
		return fmt.Sprintf("(%s + %d)", floorTo(fmt.Sprintf("(%s - %d)", local, monday), 7*86_400_000), monday), nil
	}
	return fmt.Sprintf("epoch_ms(date_trunc('%s', make_timestamp(%s * 1000)))", c.Interval, local), nil
}

// ordinal returns the expression for the ordinal of a key.
func ordinal(c query.Calendar, key string) string {
	switch c.Interval {
	case query.Day:
		return fmt.Sprintf("(%s // 86400000)", key)
	case query.Week:
		return fmt.Sprintf("((%s - 345600000) // 604800000)", key)
	}
	return fmt.Sprintf("(year(make_timestamp(%s * 1000)) * 12 + month(make_timestamp(%s * 1000)) - 1)", key, key)
}

// aheadOf returns the expression for the offset at a row's time: a search tree
// over the moments at which it changes.
func aheadOf(offsets []query.Offset) string {
	if len(offsets) == 1 {
		return fmt.Sprint(offsets[0].Ahead)
	}
	middle := len(offsets) / 2
	return fmt.Sprintf("CASE WHEN e.ts < %d THEN %s ELSE %s END",
		offsets[middle].From, aheadOf(offsets[:middle]), aheadOf(offsets[middle:]))
}

// floorTo returns the expression for the highest multiple of unit that is not
// above v; SQL's remainder has the sign of its dividend.
func floorTo(v string, unit int64) string {
	return fmt.Sprintf("(%[1]s - ((%[1]s %% %[2]d) + %[2]d) %% %[2]d)", v, unit)
}

// dataRange returns bounds of the times that the selection's rows can have.
func (s *selection) dataRange(ctx context.Context, conn *duck.Conn) (from, to int64, err error) {
	const bounds = ` FROM events WHERE project = ? AND ts >= ? AND ts < ?`
	args := []any{int64(s.scope.Project), s.scope.From, s.scope.To}
	if from, err = scalar(ctx, conn, `SELECT coalesce(min(ts), 0)`+bounds, args...); err != nil {
		return 0, 0, err
	}
	to, err = scalar(ctx, conn, `SELECT coalesce(max(ts), 0) + 1`+bounds, args...)
	return from, to, err
}
