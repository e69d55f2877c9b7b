package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/record"
)

// AnonSpan is a time in which an anon id was a user: from From to To, which is
// not included, both in milliseconds since 1970.
type AnonSpan struct {
	AnonID   string
	From, To int64
}

// Spans returns when which anon ids were a user, by the links that are stored.
func (s *Store) Spans(ctx context.Context, project uint32, userID string) (spans []AnonSpan, err error) {
	number := s.number(project, record.Person{UserID: userID})
	err = s.read(ctx, func(conn *duck.Conn, _ Mark) error {
		rows, err := conn.Query(ctx, `
			WITH named AS (SELECT DISTINCT person_anon, anon_id FROM links WHERE project = $1 AND user_id = $2)
			SELECT n.anon_id, s.from_ts, s.to_ts FROM link_spans s JOIN named n USING (person_anon)
			WHERE s.project = $1 AND s.person_user = $3 AND s.user_id = $2 ORDER BY n.anon_id, s.from_ts`, int64(project), userID, number)
		if err != nil {
			return err
		}
		spans = nil
		for rows.Next() {
			spans = append(spans, AnonSpan{AnonID: rows.Text(0), From: rows.Int64(1), To: rows.Int64(2)})
		}
		return rows.Close()
	})
	if err != nil {
		return nil, fmt.Errorf("read the anonymous ids of a user: %w", err)
	}
	return spans, nil
}
