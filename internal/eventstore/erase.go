package eventstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/identity"
	"github.com/actionpulse/actionpulse/internal/record"
)

// Person names whom an erasure or an export is about. Exactly one id is set.
type Person = record.Person

// erasure is one item of the log that takes a person away.
type erasure struct {
	project uint32
	person  record.Person
	// seq is the item's position: what has a lower one goes.
	seq uint64
	// received is when the erasure was received, since from when on claims are
	// alive then, both in milliseconds since 1970.
	received, since int64
}

// erase takes away what a person has before the position of an erasure, and
// keeps the claims of it.
//
// Of a user go: the rows with the user_id; the anonymous rows that its links
// make the user's, by the rule of the queries; its links and traits. Of an
// anon_id go: all rows with it and its links; traits are a user's and stay. Of
// both go the quarantined items that would have become such. The spans of the
// anon ids concerned are computed again from the links that are left, as if
// the others had never been: what an anon id sends later belongs to the user
// it is still linked to, or to nobody but itself.
//
// Everything is judged by what lies before the position, so that an erasure
// which was set aside, and is applied late, takes what it would have taken; but
// a link that was made again meanwhile had kept its first time, and goes.
func (b *batch) erase(ctx context.Context, r *record.Record, i int) error {
	if err := b.flush(ctx); err != nil {
		return err
	}
	e := erasure{
		project: r.Project, person: r.Items[i].Person(), seq: r.Position + uint64(i),
		received: r.Received, since: r.Received - r.Window,
	}
	if !e.person.Valid() {
		return ErrNoPerson
	}
	b.store.keepFrom(e.since)
	b.store.deletions++
	links, err := b.store.linksOf(ctx, e)
	if err != nil {
		return fmt.Errorf("read links: %w", err)
	}
	taken := takenSpans(e, links)
	if err := b.store.keepTaken(ctx, e, links, taken); err != nil {
		return fmt.Errorf("keep whose data is taken: %w", err)
	}
	if err := b.eraseRows(ctx, e, taken); err != nil {
		return fmt.Errorf("erase rows: %w", err)
	}
	if err := b.eraseQuarantined(ctx, e, taken); err != nil {
		return fmt.Errorf("erase quarantined items: %w", err)
	}
	if err := b.store.eraseLinks(ctx, e, links); err != nil {
		return fmt.Errorf("erase links: %w", err)
	}
	_, err = b.store.writer.Exec(ctx, `INSERT INTO erasures VALUES (?, ?, ?, ?)`,
		int64(e.seq), int64(e.project), b.store.number(e.project, e.person), e.received)
	crash.Point("eventstore.erased")
	return err
}

// number returns the person number of a person.
func (s *Store) number(project uint32, p record.Person) int64 {
	if p.UserID != "" {
		return s.numbers.User(project, p.UserID)
	}
	return s.numbers.Anon(project, p.AnonID)
}

// anonLinks are the links of one anon id: all there are, and what an erasure
// leaves of them.
type anonLinks struct {
	anonID            string
	all, before, left []identity.Link
}

// linksOf returns the links of each anon id that an erasure takes a link from.
func (s *Store) linksOf(ctx context.Context, e erasure) (map[anon]*anonLinks, error) {
	column := "anon_id"
	if e.person.UserID != "" {
		column = "user_id"
	}
	rows, err := s.writer.Query(ctx, `
		WITH concerned AS (SELECT DISTINCT person_anon FROM links WHERE project = $1 AND seq < $2 AND `+column+` = $3)
		SELECT person_anon, user_id, ts, seq, anon_id FROM links SEMI JOIN concerned USING (person_anon) WHERE project = $1`,
		int64(e.project), int64(e.seq), e.person.UserID+e.person.AnonID)
	if err != nil {
		return nil, err
	}
	found := map[anon]*anonLinks{}
	for rows.Next() {
		key := anon{e.project, rows.Int64(0)}
		if found[key] == nil {
			found[key] = &anonLinks{}
		}
		found[key].add(e, rows.Text(4), identity.Link{UserID: rows.Text(1), TS: rows.Int64(2), Seq: uint64(rows.Int64(3))})
	}
	return found, rows.Close()
}

func (l *anonLinks) add(e erasure, anonID string, link identity.Link) {
	l.anonID = anonID
	l.all = append(l.all, link)
	if link.Seq < e.seq {
		l.before = append(l.before, link)
	}
	if link.Seq >= e.seq || link.UserID != e.person.UserID && anonID != e.person.AnonID {
		l.left = append(l.left, link)
	}
}

// takenSpans returns the spans in which anon ids were the user who is erased;
// none for an anon id.
func takenSpans(e erasure, links map[anon]*anonLinks) map[anon][]identity.Span {
	taken := map[anon][]identity.Span{}
	for of, l := range links {
		taken[of] = slices.DeleteFunc(identity.Spans(l.before), func(s identity.Span) bool { return s.UserID != e.person.UserID })
	}
	return taken
}

// eraseLinks deletes the person's links and traits and writes the spans of the
// anon ids concerned anew.
func (s *Store) eraseLinks(ctx context.Context, e erasure, links map[anon]*anonLinks) error {
	column := "anon_id"
	if e.person.UserID != "" {
		column = "user_id"
		_, err := s.writer.Exec(ctx, `DELETE FROM traits WHERE project = ? AND seq < ? AND person = ?`,
			int64(e.project), int64(e.seq), s.number(e.project, e.person))
		if err != nil {
			return err
		}
	}
	_, err := s.writer.Exec(ctx, `DELETE FROM links WHERE project = ? AND seq < ? AND `+column+` = ?`,
		int64(e.project), int64(e.seq), e.person.UserID+e.person.AnonID)
	if err != nil {
		return err
	}
	changed, known := map[anon][]identity.Link{}, map[anon][]identity.Link{}
	for of, l := range links {
		changed[of], known[of] = l.left, l.all
	}
	return s.replaceSpans(ctx, changed, known)
}
