package eventstore

import (
	"context"
	"slices"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/identity"
)

// eraseQuarantined deletes the person's items among those set aside, and keeps
// their claims.
func (b *batch) eraseQuarantined(ctx context.Context, e erasure, taken map[anon][]identity.Span) error {
	claims, err := claimAppender(b.store.writer)
	if err != nil {
		return err
	}
	defer claims.Close()
	for after := uint64(0); ; {
		page, err := listQuarantined(ctx, b.store.writer, after, redrivePage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return claims.Flush()
		}
		for i := range page {
			q := &page[i]
			if q.Position >= e.seq || !b.store.concerns(e.project, e.person, taken, q) {
				continue
			}
			deleted, err := b.store.writer.Exec(ctx, `DELETE FROM quarantine WHERE position = ?`, int64(q.Position))
			if err != nil {
				return err
			}
			b.quarantined -= deleted
			if err := q.keepClaim(claims, e.since); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Position
	}
}

// concerns reports whether an item that was set aside is the person's. spans
// are those in which an anon id was the user.
func (s *Store) concerns(project uint32, p Person, spans map[anon][]identity.Span, q *Quarantined) bool {
	it := &q.Record.Items[0]
	switch {
	case q.Record.Project != project:
		return false
	case p.AnonID != "":
		return it.AnonID == p.AnonID
	case it.UserID != "":
		return it.UserID == p.UserID
	}
	return slices.ContainsFunc(spans[anon{project, s.numbers.Anon(project, it.AnonID)}], func(s identity.Span) bool {
		return it.TS >= s.From && it.TS < s.To
	})
}

// keepClaim keeps the claim of an item that was set aside.
func (q *Quarantined) keepClaim(a *duck.Appender, since int64) error {
	it := &q.Record.Items[0]
	if !it.Claimed || q.Record.Received < since {
		return nil
	}
	a.Int64(0, int64(q.Position))
	a.Uint32(1, q.Record.Project)
	a.Uint8(2, uint8(q.Record.KeyKind))
	a.UUID(3, it.EventID)
	a.Int64(4, q.Record.Received)
	a.Uint32(5, it.Fingerprint)
	return a.EndRow()
}
