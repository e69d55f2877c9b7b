package replaystore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Commit implements replay.Store. Every group locks in the same order, so that
// no two wait for each other: claims, marks, sessions, usage, each in their own
// order.
func (s *Store) Commit(ctx context.Context, entries []*replay.Entry) error {
	var g *group
	err := s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		g = newGroup(b, entries)
		return g.run(ctx)
	})
	if err != nil {
		return fmt.Errorf("commit chunks of replays: %w", err)
	}
	for _, m := range g.members {
		m.entry.Outcome = m.outcome
	}
	return nil
}

// group is what is committed together.
type group struct {
	batch   *sqldb.Batch
	members []*member
}

// member is one entry of the group.
type member struct {
	entry *replay.Entry
	// claimed says that the claim on the blob was there, first that the mark was
	// made.
	claimed, first bool
	// found is the mark of who was first, if it was another or an attempt of
	// this one.
	found   replay.Mark
	there   bool
	session int64
	outcome replay.Outcome
}

func newGroup(b *sqldb.Batch, entries []*replay.Entry) *group {
	g := &group{batch: b, members: make([]*member, len(entries))}
	for i, e := range entries {
		g.members[i] = &member{entry: e}
	}
	slices.SortStableFunc(g.members, func(a, b *member) int {
		return cmp.Or(strings.Compare(a.entry.ProjectID, b.entry.ProjectID),
			bytes.Compare(a.entry.Session[:], b.entry.Session[:]), cmp.Compare(a.entry.Chunk, b.entry.Chunk))
	})
	return g
}

// run does the group, step by step.
func (g *group) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{g.takeClaims, g.createMarks, g.findMarks, g.doom, g.addToSessions, g.create} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	crash.Point("replay.written")
	return nil
}

// those are the members of which something holds.
func (g *group) those(holds func(*member) bool) []*member {
	return slices.DeleteFunc(slices.Clone(g.members), func(m *member) bool { return !holds(m) })
}

// statements runs a statement for each of some members.
func (g *group) statements(ctx context.Context, members []*member, statement func(*member) sqldb.Statement) error {
	all := make([]sqldb.Statement, len(members))
	for i, m := range members {
		all[i] = statement(m)
	}
	return g.batch.Run(ctx, all)
}

// takeClaims takes the claims away: who has none makes no chunk.
func (g *group) takeClaims(ctx context.Context) error {
	return g.statements(ctx, g.members, func(m *member) sqldb.Statement {
		return sqldb.Statement{Text: takeClaimText, Args: []any{m.entry.Blob}, Row: func(scan func(...any) error) error {
			m.claimed = true
			return scan(new(string))
		}}
	})
}

// createMarks lets the unique index judge who is first.
func (g *group) createMarks(ctx context.Context) error {
	return g.statements(ctx, g.those(func(m *member) bool { return m.claimed }), func(m *member) sqldb.Statement {
		e := m.entry
		return sqldb.Statement{
			Text: createMarkText,
			Args: []any{e.ProjectID, e.Session[:], e.Chunk, e.Digest[:], e.Attempt[:], e.ReceivedAt.UnixMicro()},
			Row: func(scan func(...any) error) error {
				m.first = true
				return scan(new(int64))
			},
		}
	})
}

// findMarks reads the marks of those who were not first. One whose attempt is
// its own was committed before, although that was not known.
func (g *group) findMarks(ctx context.Context) error {
	late := g.those(func(m *member) bool { return !m.first })
	err := g.statements(ctx, late, func(m *member) sqldb.Statement {
		e := m.entry
		return sqldb.Statement{Text: findMarkText, Args: []any{e.ProjectID, e.Session[:], e.Chunk}, Row: func(scan func(...any) error) error {
			var digest, attempt []byte
			if err := scan(&digest, &attempt); err != nil {
				return err
			}
			var err error
			m.found, err = markOf(digest, attempt)
			m.there = true
			return err
		}}
	})
	if err != nil {
		return err
	}
	for _, m := range late {
		m.judge()
	}
	return nil
}

// judge says what becomes of a member that was not first in this transaction.
func (m *member) judge() {
	switch {
	case m.there && m.found.Attempt == m.entry.Attempt: // it was first in an earlier one
	case m.there:
		m.outcome.Receipt = replay.Receipt{Duplicate: true, Conflict: m.found.Digest != m.entry.Digest}
	default:
		m.outcome.Lost = true
	}
}

// doom dooms the blobs that no chunk will have.
func (g *group) doom(ctx context.Context) error {
	useless := g.those(func(m *member) bool { return m.outcome.Lost || m.outcome.Duplicate })
	slices.SortFunc(useless, func(a, b *member) int { return strings.Compare(a.entry.Blob, b.entry.Blob) })
	return g.statements(ctx, useless, func(m *member) sqldb.Statement {
		return sqldb.Statement{Text: doomBlobText, Args: []any{m.entry.Blob, m.entry.ReceivedAt.UnixMicro()}}
	})
}

func (g *group) firsts() []*member { return g.those(func(m *member) bool { return m.first }) }

func (g *group) addToSessions(ctx context.Context) error {
	return g.statements(ctx, g.firsts(), func(m *member) sqldb.Statement {
		e, sum := m.entry, &m.entry.Summary
		return sqldb.Statement{
			Text: addToSessionText,
			Args: []any{
				e.ProjectID, e.Session[:], []byte(e.SessionID), idOf(e.Person.UserID), idOf(e.Person.AnonID),
				sum.StartedAt.UnixMicro(), sum.EndedAt.UnixMicro(), e.Bytes, sum.Events, sum.Pages, sum.Errors, sum.Clicks,
			},
			Row: func(scan func(...any) error) error { return scan(&m.session) },
		}
	})
}

// idOf is a column that is null for no id.
func idOf(id string) any {
	if id == "" {
		return nil
	}
	return []byte(id)
}

// create makes the chunks, and counts them where they belong by receipt.
func (g *group) create(ctx context.Context) error {
	err := g.statements(ctx, g.firsts(), func(m *member) sqldb.Statement {
		e, sum := m.entry, &m.entry.Summary
		return sqldb.Statement{Text: createChunkText, Args: []any{
			m.session, e.Chunk, e.ProjectID, e.Blob, e.Bytes, e.StoredBytes, idOf(e.Person.UserID), idOf(e.Person.AnonID),
			e.ReceivedAt.UnixMicro(), sum.StartedAt.UnixMicro(), sum.EndedAt.UnixMicro(), sum.Events, sum.Pages, sum.Errors, sum.Clicks,
		}}
	})
	if err != nil {
		return err
	}
	return g.batch.Run(ctx, g.usage())
}

// usage adds what was received to the months.
func (g *group) usage() []sqldb.Statement {
	type place struct {
		project string
		month   int64
	}
	type sum struct{ chunks, bytes int64 }
	sums := map[place]sum{}
	for _, m := range g.firsts() {
		at := m.entry.ReceivedAt.UTC()
		p := place{m.entry.ProjectID, int64(at.Year())*100 + int64(at.Month())}
		sums[p] = sum{sums[p].chunks + 1, sums[p].bytes + m.entry.Bytes}
	}
	args := make([][]any, 0, len(sums))
	for p, n := range sums {
		args = append(args, []any{p.project, p.month, n.chunks, n.bytes})
	}
	slices.SortFunc(args, func(a, b []any) int {
		return cmp.Or(strings.Compare(a[0].(string), b[0].(string)), cmp.Compare(a[1].(int64), b[1].(int64))) //nolint:forcetypeassert // as above
	})
	return each(addUsageText, args)
}
