package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/identity"
	"github.com/actionpulse/actionpulse/internal/record"
)

// Exported is one thing that is stored of a person: exactly one member is set.
type Exported struct {
	Event       *ExportedEvent
	Link        *ExportedLink
	Trait       *ExportedTrait
	Quarantined *Quarantined
}

// ExportedEvent is an event row with all its columns. Times are in
// milliseconds since 1970.
type ExportedEvent struct {
	Position uint64
	TS       int64
	Received int64
	// ClientTS is nil if the client sent no time.
	ClientTS *int64
	TSStatus record.TSStatus
	Event    string
	// AnonID, UserID and SessionID are empty when absent.
	AnonID, UserID, SessionID string
	KeyKind                   record.KeyKind
	// Key is the number of the credential.
	Key     int64
	EventID record.EventID
	// Claimed says that the client chose EventID.
	Claimed     bool
	Fingerprint uint32
	// Properties and Context are JSON objects, nil when absent.
	Properties, Context []byte
}

// ExportedLink says that an anon_id was linked to a user_id at TS.
type ExportedLink struct {
	Position       uint64
	AnonID, UserID string
	TS             int64
}

// ExportedTrait is one value that a trait of a user was set to at TS. Value is
// JSON.
type ExportedTrait struct {
	Position uint64
	Name     string
	Value    []byte
	TS       int64
}

// ExportPerson calls fn with everything that is stored of a person, as one
// commit left it: what an erasure of the person would take away at that
// moment. Events come first, then links, traits and what was set aside, each
// in order of position. It stops at fn's first error and returns it; ErrNoPerson
// if not exactly one id is set.
func (s *Store) ExportPerson(ctx context.Context, project uint32, p Person, fn func(Exported) error) error {
	if !p.Valid() {
		return ErrNoPerson
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	x := export{snap: snap, project: project, person: p, fn: fn}
	for _, part := range []func(context.Context) error{x.events, x.links, x.traits, x.quarantined} {
		if err := part(ctx); err != nil {
			return errors.Join(fmt.Errorf("export a person: %w", classify(err)), snap.Close())
		}
	}
	return snap.Close()
}

type export struct {
	snap    *Snapshot
	project uint32
	person  Person
	fn      func(Exported) error
	// spans are those in which an anon id was the user.
	spans map[anon][]identity.Span
}

// each streams the rows of a query to fn.
func (x *export) each(ctx context.Context, fn func(*duck.Rows) Exported, query string, args ...any) error {
	rows, err := x.snap.conn.Stream(ctx, query, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := x.fn(fn(rows)); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return rows.Close()
}

const exportedColumns = `SELECT e.seq, e.ts, e.received, e.client_ts, e.ts_status, e.event, e.anon_id, e.user_id, e.session_id,
	e.key_kind, e.key, e.event_id, e.claimed, e.fingerprint, e.properties, e.context FROM events e`

func (x *export) events(ctx context.Context) error {
	project := int64(x.project)
	if x.person.AnonID != "" {
		return x.each(ctx, exportedEvent, exportedColumns+` WHERE e.project = ? AND e.anon_id = ? ORDER BY e.seq`, project, x.person.AnonID)
	}
	return x.each(ctx, exportedEvent, exportedColumns+spanJoin+`
		WHERE e.project = $1 AND (e.person = $2 AND e.user_id = $3 OR e.user_id IS NULL AND s.user_id = $3)
		ORDER BY e.seq`, project, x.number(), x.person.UserID)
}

func exportedEvent(rows *duck.Rows) Exported {
	e := &ExportedEvent{
		Position: uint64(rows.Int64(0)), TS: rows.Int64(1), Received: rows.Int64(2), TSStatus: record.TSStatus(rows.Uint8(4)),
		Event: rows.Text(5), AnonID: rows.Text(6), UserID: rows.Text(7), SessionID: rows.Text(8),
		KeyKind: record.KeyKind(rows.Uint8(9)), Key: rows.Int64(10), EventID: rows.UUID(11), Claimed: rows.Bool(12),
		Fingerprint: rows.Uint32(13), Properties: rows.Bytes(14), Context: rows.Bytes(15),
	}
	if !rows.Null(3) {
		e.ClientTS = new(rows.Int64(3))
	}
	return Exported{Event: e}
}

func (x *export) number() int64 { return x.snap.store.number(x.project, x.person) }

// column names the column that holds the person's id, and the id.
func (x *export) column() (name, id string) {
	if x.person.UserID != "" {
		return "user_id", x.person.UserID
	}
	return "anon_id", x.person.AnonID
}

func (x *export) links(ctx context.Context) error {
	column, id := x.column()
	return x.each(ctx, func(rows *duck.Rows) Exported {
		return Exported{Link: &ExportedLink{
			Position: uint64(rows.Int64(0)), AnonID: rows.Text(1), UserID: rows.Text(2), TS: rows.Int64(3),
		}}
	}, `SELECT seq, anon_id, user_id, ts FROM links WHERE project = ? AND `+column+` = ? ORDER BY seq`, int64(x.project), id)
}

func (x *export) traits(ctx context.Context) error {
	if x.person.UserID == "" {
		return nil
	}
	return x.each(ctx, func(rows *duck.Rows) Exported {
		return Exported{Trait: &ExportedTrait{
			Position: uint64(rows.Int64(0)), Name: rows.Text(1), Value: rows.Bytes(2), TS: rows.Int64(3),
		}}
	}, `SELECT seq, name, value, ts FROM traits WHERE project = ? AND person = ? ORDER BY seq, name`, int64(x.project), x.number())
}

func (x *export) quarantined(ctx context.Context) error {
	if err := x.readSpans(ctx); err != nil {
		return err
	}
	for after := uint64(0); ; {
		page, err := listQuarantined(ctx, x.snap.conn, after, redrivePage)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if !x.snap.store.concerns(x.project, x.person, x.spans, &page[i]) {
				continue
			}
			if err := x.fn(Exported{Quarantined: &page[i]}); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Position
	}
}

func (x *export) readSpans(ctx context.Context) error {
	rows, err := x.snap.conn.Query(ctx, `SELECT person_anon, from_ts, to_ts FROM link_spans WHERE project = ? AND user_id = ?`,
		int64(x.project), x.person.UserID)
	if err != nil {
		return err
	}
	x.spans = map[anon][]identity.Span{}
	for rows.Next() {
		of := anon{x.project, rows.Int64(0)}
		x.spans[of] = append(x.spans[of], identity.Span{From: rows.Int64(1), To: rows.Int64(2), UserID: x.person.UserID})
	}
	return rows.Close()
}
