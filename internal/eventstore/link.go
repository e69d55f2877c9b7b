package eventstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/identity"
	"github.com/actionpulse/actionpulse/internal/record"
)

// anon is one anon id of one project.
type anon struct {
	project uint32
	person  int64
}

// pendingLink is a link as one item of the batch asks for it.
type pendingLink struct {
	anon
	anonID string
	link   identity.Link
}

func (b *batch) link(r *record.Record, it *record.Item, position uint64) error {
	if it.AnonID == "" || it.UserID == "" {
		return errors.New("a link needs an anon id and a user id")
	}
	b.links = append(b.links, pendingLink{
		anon:   anon{r.Project, b.store.numbers.Anon(r.Project, it.AnonID)},
		anonID: it.AnonID,
		link:   identity.Link{UserID: it.UserID, TS: it.TS, Seq: position},
	})
	return nil
}

// link adds those of the pending links whose pair is new and recomputes the
// spans of the anon ids they belong to.
func (s *Store) link(ctx context.Context, pending []pendingLink) error {
	if len(pending) == 0 {
		return nil
	}
	known, err := s.knownLinks(ctx, pending)
	if err != nil {
		return fmt.Errorf("read links: %w", err)
	}
	changed, err := s.addLinks(pending, known)
	if err != nil {
		return fmt.Errorf("add links: %w", err)
	}
	if err := s.replaceSpans(ctx, changed, known); err != nil {
		return fmt.Errorf("replace link spans: %w", err)
	}
	return nil
}

// knownLinks returns the stored links of every anon id in the batch.
func (s *Store) knownLinks(ctx context.Context, pending []pendingLink) (map[anon][]identity.Link, error) {
	known := make(map[anon][]identity.Link, len(pending))
	for i := range pending {
		known[pending[i].anon] = nil
	}
	if err := s.touch(ctx, known); err != nil {
		return nil, err
	}
	rows, err := s.writer.Query(ctx, `SELECT project, person_anon, user_id, ts, seq
		FROM links SEMI JOIN touched USING (project, person_anon)`)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		of := anon{rows.Uint32(0), rows.Int64(1)}
		known[of] = append(known[of], identity.Link{UserID: rows.Text(2), TS: rows.Int64(3), Seq: uint64(rows.Int64(4))})
	}
	return known, rows.Close()
}

// touch fills the writer's private table with the anon ids.
func (s *Store) touch(ctx context.Context, anons map[anon][]identity.Link) error {
	if _, err := s.writer.Exec(ctx, `TRUNCATE touched`); err != nil {
		return err
	}
	a, err := touchedAppender(s.writer)
	if err != nil {
		return err
	}
	defer a.Close()
	for of := range anons {
		a.Uint32(0, of.project)
		a.Int64(1, of.person)
		if err := a.EndRow(); err != nil {
			return err
		}
	}
	return a.Flush()
}

// addLinks stores the new pairs, in order of position, and returns for each
// anon id that got one the links it has now. known keeps what was stored
// before.
func (s *Store) addLinks(pending []pendingLink, known map[anon][]identity.Link) (map[anon][]identity.Link, error) {
	a, err := linkAppender(s.writer)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	changed := map[anon][]identity.Link{}
	for i := range pending {
		p := &pending[i]
		links, ok := changed[p.anon]
		if !ok {
			links = known[p.anon]
		}
		if linked(links, p.link.UserID) {
			continue
		}
		changed[p.anon] = append(slices.Clip(links), p.link)
		a.Uint32(0, p.project)
		a.Int64(1, p.person)
		a.Text(2, p.anonID)
		a.Text(3, p.link.UserID)
		a.Int64(4, p.link.TS)
		a.Int64(5, int64(p.link.Seq))
		if err := a.EndRow(); err != nil {
			return nil, err
		}
	}
	return changed, a.Flush()
}

func linked(links []identity.Link, userID string) bool {
	for i := range links {
		if links[i].UserID == userID {
			return true
		}
	}
	return false
}

// replaceSpans writes the spans of the changed anon ids anew.
func (s *Store) replaceSpans(ctx context.Context, changed, known map[anon][]identity.Link) error {
	if err := s.dropSpans(ctx, changed, known); err != nil {
		return err
	}
	if len(changed) == 0 {
		return nil
	}
	a, err := spanAppender(s.writer)
	if err != nil {
		return err
	}
	defer a.Close()
	for of, links := range changed {
		if err := s.appendSpans(a, of, identity.Spans(links)); err != nil {
			return err
		}
	}
	return a.Flush()
}

func (s *Store) appendSpans(a *duck.Appender, of anon, spans []identity.Span) error {
	for _, span := range spans {
		a.Uint32(0, of.project)
		a.Int64(1, of.person)
		a.Int64(2, span.From)
		a.Int64(3, span.To)
		a.Int64(4, s.numbers.User(of.project, span.UserID))
		a.Text(5, span.UserID)
		if err := a.EndRow(); err != nil {
			return err
		}
	}
	return nil
}

// dropSpans deletes the spans of the changed anon ids that had any.
func (s *Store) dropSpans(ctx context.Context, changed, known map[anon][]identity.Link) error {
	had := map[anon][]identity.Link{}
	for of := range changed {
		if len(known[of]) > 0 {
			had[of] = nil
		}
	}
	if len(had) == 0 {
		return nil
	}
	if err := s.touch(ctx, had); err != nil {
		return err
	}
	_, err := s.writer.Exec(ctx, `DELETE FROM link_spans USING touched
		WHERE link_spans.project = touched.project AND link_spans.person_anon = touched.person_anon`)
	return err
}
