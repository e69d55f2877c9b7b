package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/query"
)

// Retention returns the size of each cohort and who of it returned when.
func (s *Store) Retention(ctx context.Context, q query.Retention) (cells []query.Cohort, state query.State, err error) {
	state, err = s.answer(ctx, q.Scope, func(conn *duck.Conn, sel *selection) error {
		key, err := sel.bucketKey(ctx, conn, q.Calendar)
		if err != nil {
			return err
		}
		start, back := sel.arg(q.StartEvent), sel.arg(q.ReturnEvent)
		sel.where = append(sel.where, fmt.Sprintf("(e.event = %s OR e.event = %s)", start, back))
		rowsOf := sel.sql(sel.person()+" AS who", "e.ts AS ts", ordinal(q.Calendar, key)+" AS ordinal",
			"e.event = "+start+" AS starts", "e.event = "+back+" AS returns")
		periods := sel.arg(int64(q.Periods))
		rows, err := conn.Query(ctx, fmt.Sprintf(retentionQuery, rowsOf, periods), sel.args...)
		if err != nil {
			return err
		}
		for rows.Next() {
			cells = append(cells, query.Cohort{Ordinal: rows.Int64(0), Offset: rows.Int64(1), Value: rows.Int64(2)})
		}
		return rows.Close()
	})
	return cells, state, err
}

const retentionQuery = `
WITH rows AS MATERIALIZED (%s),
firsts AS MATERIALIZED (
	SELECT who, min(ts) AS ts, arg_min(ordinal, ts) AS ordinal FROM rows WHERE starts GROUP BY who
)
SELECT ordinal::BIGINT, -1::BIGINT, count(*) FROM firsts GROUP BY 1
UNION ALL
SELECT firsts.ordinal::BIGINT, (rows.ordinal - firsts.ordinal)::BIGINT, count(DISTINCT who)
FROM rows JOIN firsts USING (who)
WHERE rows.returns AND rows.ts >= firsts.ts AND rows.ordinal >= firsts.ordinal AND rows.ordinal - firsts.ordinal < %s
GROUP BY 1, 2`
