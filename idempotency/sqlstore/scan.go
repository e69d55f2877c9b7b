package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// rower is a database, a connection or a transaction.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// row is a record as the table holds it.
type row struct {
	state                         string
	owner, print, tombstone, body []byte
	epoch, createdAt, now         int64
	leaseExpiresAt, status        sql.NullInt64
	answerExpiresAt, keyExpiresAt sql.NullInt64
	contentType, header           sql.NullString
	hasBody                       bool // drivers return empty bytes as nil
	resourceKind, resourceID      string
	repeats, conflicts            int64
}

// read is find on a reading connection. On SQLite, whose driver compiles a
// statement each time it is given its text, it is prepared once.
func (s *Store) read(ctx context.Context, ref idempotency.Ref) (rec idempotency.Record, now time.Time, found bool, err error) {
	if s.options.Dialect != SQLite {
		return s.find(ctx, s.options.DB, ref)
	}
	prepared, err := s.finder.get(ctx, s.options.DB, s.sql.find)
	if err != nil {
		return rec, now, false, fmt.Errorf("prepare to read idempotency keys: %w", err)
	}
	return s.find(ctx, prepared, ref)
}

// finder is the statement find, prepared on the reading connections. It is a
// rower for that text alone.
type finder struct {
	mu       sync.Mutex
	prepared *sql.Stmt
}

// get prepares the statement the first time.
func (f *finder) get(ctx context.Context, db *sql.DB, text string) (rower, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.prepared == nil {
		prepared, err := db.PrepareContext(context.WithoutCancel(ctx), text)
		if err != nil {
			return nil, err
		}
		f.prepared = prepared
	}
	return statement{f.prepared}, nil
}

// statement is a prepared statement as a rower that ignores the text.
type statement struct{ *sql.Stmt }

func (s statement) QueryRowContext(ctx context.Context, _ string, args ...any) *sql.Row {
	return s.Stmt.QueryRowContext(ctx, args...)
}

// find reads a key's record and the time of reading. An answer that has expired
// by then is left out.
func (s *Store) find(
	ctx context.Context, from rower, ref idempotency.Ref,
) (rec idempotency.Record, now time.Time, found bool, err error) {
	var r row
	err = r.scan(from.QueryRowContext(ctx, s.sql.find, s.now(), ref.Scope, ref.Namespace, ref.Key).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return rec, now, false, nil
	}
	if err != nil {
		return rec, now, false, fmt.Errorf("read an idempotency key: %w", err)
	}
	rec, err = r.record(ref)
	return rec, r.at(), err == nil, err
}

// scan reads a row of the statement find.
func (r *row) scan(scan func(dest ...any) error) error {
	return scan(
		&r.state, &r.owner, &r.epoch, &r.leaseExpiresAt, &r.print, &r.tombstone, &r.status, &r.contentType, &r.header, &r.body, &r.hasBody,
		&r.resourceKind, &r.resourceID, &r.createdAt, &r.answerExpiresAt, &r.keyExpiresAt, &r.repeats, &r.conflicts, &r.now)
}

// at is when the row was read.
func (r *row) at() time.Time { return time.UnixMicro(r.now).UTC() }

func (r *row) record(ref idempotency.Ref) (idempotency.Record, error) {
	rec := idempotency.Record{
		Ref: ref, State: idempotency.State(r.state),
		Owner:           idempotency.Owner{Epoch: r.epoch, ExpiresAt: timeOf(r.leaseExpiresAt)},
		Resource:        idempotency.Resource{Kind: r.resourceKind, ID: r.resourceID},
		CreatedAt:       time.UnixMicro(r.createdAt).UTC(),
		AnswerExpiresAt: timeOf(r.answerExpiresAt), KeyExpiresAt: timeOf(r.keyExpiresAt),
		Repeats: r.repeats, Conflicts: r.conflicts,
	}
	copy(rec.Owner.Token[:], r.owner)
	if err := errors.Join(rec.Print.UnmarshalBinary(r.print), rec.Tombstone.UnmarshalBinary(r.tombstone)); err != nil {
		return rec, fmt.Errorf("read an idempotency key: %w", err)
	}
	if !r.status.Valid || !r.hasBody || past(rec.AnswerExpiresAt, r.at()) { // as if it had been swept
		return rec, nil
	}
	if r.body == nil {
		r.body = []byte{}
	}
	rec.Answer = &idempotency.Answer{
		Status: int(r.status.Int64), ContentType: r.contentType.String, Body: r.body, Resource: rec.Resource,
	}
	if r.header.Valid {
		if err := json.Unmarshal([]byte(r.header.String), &rec.Answer.Header); err != nil {
			return rec, fmt.Errorf("read the header of a stored answer: %w", err)
		}
	}
	return rec, nil
}

// past says whether t is a time and has come.
func past(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

func timeOf(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// span is a duration as a parameter; NULL for "for ever".
func span(d time.Duration) sql.NullInt64 {
	return sql.NullInt64{Int64: d.Microseconds(), Valid: d > 0}
}

// sortCounts puts counts into the one order in which rows are locked.
func sortCounts(counts []idempotency.Count) {
	slices.SortFunc(counts, func(a, b idempotency.Count) int {
		return compareRefs(a.Ref, b.Ref)
	})
}

// compareRefs is the one order in which rows are locked.
func compareRefs(a, b idempotency.Ref) int {
	if c := strings.Compare(a.Scope, b.Scope); c != 0 {
		return c
	}
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}
