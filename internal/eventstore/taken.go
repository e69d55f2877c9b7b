package eventstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/identity"
)

// Taken is somebody who had data in common with a person who was erased. Of a
// user: an anon id, with a span in which it was the user by the links that were
// before the erasure; with an empty span, an anon id that events or links of the
// user named, and who else was linked to one of those: what was exported of them
// before a link came late may be the user's now. Of an anon id: a user whom its
// links or its events named; the span is empty. Times are in milliseconds since
// 1970.
type Taken struct {
	Person   Person
	From, To int64
}

// keepTaken keeps what [Store.Taken] returns of an erasure, in its transaction:
// afterwards nobody could find it out.
func (s *Store) keepTaken(ctx context.Context, e erasure, links map[anon]*anonLinks, taken map[anon][]identity.Span) error {
	for of, l := range links {
		if e.person.UserID == "" {
			for _, link := range l.before {
				if err := s.keepOne(ctx, e, Taken{Person: Person{UserID: link.UserID}}); err != nil {
					return err
				}
			}
			continue
		}
		for _, span := range taken[of] {
			if err := s.keepOne(ctx, e, Taken{Person{AnonID: l.anonID}, span.From, span.To}); err != nil {
				return err
			}
		}
		others := []Person{{AnonID: l.anonID}} // it may never have been the user in the end
		for _, link := range l.before {
			if link.UserID != e.person.UserID { // it may have been the other one's until a link came late
				others = append(others, Person{UserID: link.UserID})
			}
		}
		for _, o := range others {
			if err := s.keepOne(ctx, e, Taken{Person: o}); err != nil {
				return err
			}
		}
	}
	named, condition := `NULL, user_id`, `anon_id = $5 AND user_id IS NOT NULL`
	if e.person.UserID != "" {
		named, condition = `anon_id, NULL`, `user_id = $5 AND person = $3 AND anon_id IS NOT NULL`
	}
	_, err := s.writer.Exec(ctx, `
		INSERT INTO taken_spans
		SELECT DISTINCT $2::BIGINT, $1::UINTEGER, $3::BIGINT, `+named+`, 0, 0, $4::BIGINT
		FROM events WHERE project = $1 AND seq < $2 AND `+condition,
		int64(e.project), int64(e.seq), s.number(e.project, e.person), e.received, e.person.UserID+e.person.AnonID)
	return err
}

func (s *Store) keepOne(ctx context.Context, e erasure, t Taken) error {
	_, err := s.writer.Exec(ctx, `INSERT INTO taken_spans VALUES (?, ?, ?, nullif(?, ''), nullif(?, ''), ?, ?, ?)`,
		int64(e.seq), int64(e.project), s.number(e.project, e.person), t.Person.AnonID, t.Person.UserID, t.From, t.To, e.received)
	return err
}

// Taken returns whose data the erasures of a person up to a position have taken,
// too, until [Store.ForgetTaken], for at most 35 days. It returns ErrNoPerson if
// not exactly one id is set.
func (s *Store) Taken(ctx context.Context, project uint32, p Person, position uint64) (all []Taken, err error) {
	if !p.Valid() {
		return nil, ErrNoPerson
	}
	err = s.read(ctx, func(conn *duck.Conn, _ Mark) error {
		rows, err := conn.Query(ctx, `
			SELECT DISTINCT coalesce(anon_id, ''), coalesce(user_id, ''), from_ts, to_ts FROM taken_spans
			WHERE project = ? AND person = ? AND seq <= ? ORDER BY ALL`, int64(project), s.number(project, p), int64(position))
		if err != nil {
			return err
		}
		all = nil
		for rows.Next() {
			all = append(all, Taken{Person{AnonID: rows.Text(0), UserID: rows.Text(1)}, rows.Int64(2), rows.Int64(3)})
		}
		return rows.Close()
	})
	if err != nil {
		return nil, fmt.Errorf("read whose data was taken: %w", err)
	}
	return all, nil
}

// TakenParams says who else had data in common with a person that an erasure at
// a position has taken: in what is kept elsewhere.
type TakenParams struct {
	Project  uint32
	Person   Person
	Position uint64
	Others   []Person
}

// KeepTaken has [Store.Taken] return others, with empty spans, as long as it
// returns what the erasure has kept itself; nobody, if that was not applied or
// is forgotten. It may be repeated. It returns ErrNoPerson if of one of the
// persons not exactly one id is set.
func (s *Store) KeepTaken(ctx context.Context, p TakenParams) error {
	if !p.Person.Valid() || slices.ContainsFunc(p.Others, func(o Person) bool { return !o.Valid() }) {
		return ErrNoPerson
	}
	err := s.writing(ctx, func() error {
		return transaction(ctx, s.writer, func() error {
			for _, o := range p.Others {
				_, err := s.writer.Exec(ctx, `
					INSERT INTO taken_spans SELECT seq, project, person, nullif(?, ''), nullif(?, ''), 0, 0, received
					FROM erasures WHERE seq = ? AND project = ? AND person = ?`,
					o.AnonID, o.UserID, int64(p.Position), int64(p.Project), s.number(p.Project, p.Person))
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("keep whose data was taken: %w", classify(err))
	}
	return nil
}

// ForgetTaken forgets what [Store.Taken] returns; it stays in the files until
// [Store.Rewrite]. It returns ErrNoPerson if not exactly one id is set.
func (s *Store) ForgetTaken(ctx context.Context, project uint32, p Person, position uint64) error {
	if !p.Valid() {
		return ErrNoPerson
	}
	err := s.writing(ctx, func() error {
		s.deletions++
		_, err := s.writer.Exec(ctx, `DELETE FROM taken_spans WHERE project = ? AND person = ? AND seq <= ?`,
			int64(project), s.number(project, p), int64(position))
		return err
	})
	if err != nil {
		return fmt.Errorf("forget whose data was taken: %w", classify(err))
	}
	return nil
}
