// Package replaystore keeps marks, sessions and chunks of recordings in the
// transactional store, the claims on their blobs, and where these are. It decides nothing beyond
// what the schema's constraints decide.
//
// Invariants:
//   - marks are only added;
//   - a chunk's row is made and taken away together with the list of blobs that
//     no chunk has;
//   - a session's row is locked by whoever makes or deletes its chunks, and
//     sums up exactly those that are there.
package replaystore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Store implements replay.Store.
type Store struct{ db *sqldb.DB }

var _ replay.Store = (*Store)(nil)

// New returns a Store that reads and writes db, which stays the caller's to
// close.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// sizeOf is a page's size as queries take it.
func sizeOf(limit int) int32 { return int32(min(max(limit, 0), math.MaxInt32)) }

// FindMark implements replay.Store.
func (s *Store) FindMark(ctx context.Context, ref replay.ChunkRef) (replay.Mark, bool, error) {
	row, err := s.db.Read().FindReplayMark(ctx, sqldb.FindReplayMarkParams{
		ProjectID: ref.ProjectID, SessionHash: ref.Session[:], Chunk: ref.Chunk,
	})
	if errors.Is(err, sql.ErrNoRows) {
		return replay.Mark{}, false, nil
	}
	if err != nil {
		return replay.Mark{}, false, fmt.Errorf("read the mark of a chunk: %w", err)
	}
	m, err := markOf(row.Digest, row.Attempt)
	return m, err == nil, err
}

func markOf(digest, attempt []byte) (m replay.Mark, err error) {
	if len(digest) != len(m.Digest) || len(attempt) != len(m.Attempt) {
		return m, fmt.Errorf("a mark has a digest of %d bytes and an attempt of %d", len(digest), len(attempt))
	}
	return replay.Mark{Digest: [sha256.Size]byte(digest), Attempt: [16]byte(attempt)}, nil
}

// ListSessions implements replay.Store.
func (s *Store) ListSessions(ctx context.Context, q replay.ListQuery) ([]replay.Session, error) {
	rows, err := s.db.Read().ListReplaySessions(ctx, listParams(q))
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	all := make([]replay.Session, len(rows))
	for i := range rows {
		all[i] = sessionOf(&rows[i])
	}
	return all, nil
}

func listParams(q replay.ListQuery) sqldb.ListReplaySessionsParams {
	p := sqldb.ListReplaySessionsParams{
		ProjectID: q.ProjectID, Before: math.MaxInt64, FromAt: math.MinInt64, ToAt: math.MaxInt64,
		MinDuration: q.MinDuration.Microseconds(), MostErrors: math.MaxInt64, AnyPerson: 1, Person: []byte(q.Person), Size: sizeOf(q.Limit),
	}
	if q.Before != 0 {
		p.Before = q.Before
	}
	if !q.From.IsZero() {
		p.FromAt = q.From.UnixMicro()
	}
	if !q.To.IsZero() {
		p.ToAt = q.To.UnixMicro()
	}
	if q.Person != "" {
		p.AnyPerson = 0
	}
	if q.HasErrors != nil && *q.HasErrors {
		p.LeastErrors = 1
	} else if q.HasErrors != nil {
		p.MostErrors = 0
	}
	return p
}

// FindSession implements replay.Store.
func (s *Store) FindSession(ctx context.Context, projectID string, session [sha256.Size]byte) (replay.Session, bool, error) {
	row, err := s.db.Read().FindReplaySession(ctx, sqldb.FindReplaySessionParams{ProjectID: projectID, SessionHash: session[:]})
	if errors.Is(err, sql.ErrNoRows) {
		return replay.Session{}, false, nil
	}
	if err != nil {
		return replay.Session{}, false, fmt.Errorf("read a session: %w", err)
	}
	return sessionOf(&row), true, nil
}

// ListChunks implements replay.Store.
func (s *Store) ListChunks(ctx context.Context, session, after int64, limit int) ([]replay.Chunk, error) {
	rows, err := s.db.Read().ListReplayChunks(ctx, sqldb.ListReplayChunksParams{SessionNumber: session, After: after, Size: sizeOf(limit)})
	if err != nil {
		return nil, fmt.Errorf("read chunks: %w", err)
	}
	return chunksOf(rows), nil
}

// FindChunk implements replay.Store.
func (s *Store) FindChunk(ctx context.Context, ref replay.ChunkRef) (replay.Chunk, bool, error) {
	row, err := s.db.Read().FindReplayChunk(ctx, sqldb.FindReplayChunkParams{
		ProjectID: ref.ProjectID, SessionHash: ref.Session[:], Chunk: ref.Chunk,
	})
	if errors.Is(err, sql.ErrNoRows) {
		return replay.Chunk{}, false, nil
	}
	if err != nil {
		return replay.Chunk{}, false, fmt.Errorf("read a chunk: %w", err)
	}
	return chunkOf(&row), true, nil
}

// ListPersonChunks implements replay.Store.
func (s *Store) ListPersonChunks(ctx context.Context, q replay.PersonQuery) ([]replay.Chunk, error) {
	rows, err := listPersonChunks(ctx, s.db.Read(), q)
	if err != nil {
		return nil, fmt.Errorf("read chunks of a person: %w", err)
	}
	all := make([]replay.Chunk, len(rows))
	for i, row := range rows {
		all[i] = replay.Chunk{
			Session: row.SessionNumber, SessionID: string(row.SessionID), Chunk: row.Chunk, Blob: row.Blob, Bytes: row.Bytes,
			StoredBytes: row.StoredBytes, ReceivedAt: time.UnixMicro(row.ReceivedAt).UTC(),
		}
	}
	return all, nil
}

// listPersonChunks reads those of a user, or those of an anonymous id, unless
// any are meant only those that have no user.
func listPersonChunks(ctx context.Context, queries *sqldb.Queries, q replay.PersonQuery) ([]sqldb.ListReplayUserChunksRow, error) {
	p := sqldb.ListReplayUserChunksParams{
		ProjectID: q.ProjectID, UserID: []byte(q.Part.Person.UserID), AfterSession: q.AfterSession, After: q.After, Size: sizeOf(q.Limit),
		ReceivedFrom: math.MinInt64, ReceivedBefore: math.MaxInt64,
	}
	if !q.Part.ReceivedBefore.IsZero() {
		p.ReceivedBefore = q.Part.ReceivedBefore.UnixMicro()
	}
	if within := q.Part.Received; within != nil {
		p.ReceivedFrom, p.ReceivedBefore = micros(within.From), min(p.ReceivedBefore, micros(within.To))
	}
	if q.Part.Person.UserID != "" {
		return queries.ListReplayUserChunks(ctx, p)
	}
	anyUser := int64(0)
	if q.Part.AnyUser {
		anyUser = 1
	}
	rows, err := queries.ListReplayAnonChunks(ctx, sqldb.ListReplayAnonChunksParams{
		ProjectID: p.ProjectID, AnonID: []byte(q.Part.Person.AnonID), AfterSession: p.AfterSession, After: p.After, Size: p.Size,
		ReceivedFrom: p.ReceivedFrom, ReceivedBefore: p.ReceivedBefore, AnyUser: anyUser,
	})
	all := make([]sqldb.ListReplayUserChunksRow, len(rows))
	for i, row := range rows {
		all[i] = sqldb.ListReplayUserChunksRow(row)
	}
	return all, err
}

// ListCompanions implements replay.Store.
func (s *Store) ListCompanions(ctx context.Context, projectID string, p replay.Person, before time.Time) (all []replay.Person, err error) {
	var found [][]byte
	if p.UserID != "" {
		found, err = s.db.Read().ListReplayAnonsOfUser(ctx, sqldb.ListReplayAnonsOfUserParams{
			ProjectID: projectID, UserID: []byte(p.UserID), Before: before.UnixMicro(),
		})
	} else {
		found, err = s.db.Read().ListReplayUsersOfAnon(ctx, sqldb.ListReplayUsersOfAnonParams{
			ProjectID: projectID, AnonID: []byte(p.AnonID), Before: before.UnixMicro(),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read whom chunks name: %w", err)
	}
	for _, one := range found {
		if p.UserID != "" {
			all = append(all, replay.Person{AnonID: string(one)})
		} else {
			all = append(all, replay.Person{UserID: string(one)})
		}
	}
	return all, nil
}

// micros are milliseconds as the columns have them; the ends of time stay.
func micros(milli int64) int64 {
	const most = math.MaxInt64 / 1000
	switch {
	case milli > most:
		return math.MaxInt64
	case milli < -most:
		return math.MinInt64
	default:
		return milli * 1000
	}
}

// NewestChunk implements replay.Store.
func (s *Store) NewestChunk(ctx context.Context, projectID string) (time.Time, error) {
	micros, err := s.db.Read().NewestReplayChunk(ctx, projectID)
	if err != nil || micros == 0 {
		return time.Time{}, err
	}
	return time.UnixMicro(micros).UTC(), nil
}

// ListBlobs implements replay.Store.
func (s *Store) ListBlobs(ctx context.Context, after string, limit int) ([]replay.Chunk, error) {
	rows, err := s.db.Read().ListReplayBlobs(ctx, sqldb.ListReplayBlobsParams{After: after, Size: sizeOf(limit)})
	if err != nil {
		return nil, fmt.Errorf("read chunks by their blobs: %w", err)
	}
	all := make([]replay.Chunk, len(rows))
	for i := range rows {
		row := &rows[i]
		all[i] = replay.Chunk{
			Session: row.SessionNumber, SessionID: string(row.SessionID), ProjectID: row.ProjectID, Chunk: row.Chunk, Blob: row.Blob,
			Bytes: row.Bytes, StoredBytes: row.StoredBytes, ReceivedAt: time.UnixMicro(row.ReceivedAt).UTC(),
		}
	}
	return all, nil
}

func chunksOf(rows []sqldb.ReplayChunk) []replay.Chunk {
	all := make([]replay.Chunk, len(rows))
	for i := range rows {
		all[i] = chunkOf(&rows[i])
	}
	return all
}

func chunkOf(row *sqldb.ReplayChunk) replay.Chunk {
	return replay.Chunk{
		Session: row.SessionNumber, Chunk: row.Chunk, Blob: row.Blob, Bytes: row.Bytes, StoredBytes: row.StoredBytes,
		ReceivedAt: time.UnixMicro(row.ReceivedAt).UTC(),
	}
}

func sessionOf(row *sqldb.ReplaySession) replay.Session {
	return replay.Session{
		Number: row.Number, SessionID: string(row.SessionID),
		Person: replay.Person{UserID: string(row.UserID), AnonID: string(row.AnonID)},
		Summary: replay.Summary{
			StartedAt: time.UnixMicro(row.StartedAt).UTC(), EndedAt: time.UnixMicro(row.EndedAt).UTC(),
			Events: row.Events, Pages: row.Pages, Errors: row.Errors, Clicks: row.Clicks,
		},
		Chunks: row.Chunks, Bytes: row.Bytes,
	}
}
