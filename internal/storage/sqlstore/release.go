package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/release"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Judge implements release.Store.
func (s *Store) Judge(ctx context.Context, r idempotency.Request) (idempotency.Result, bool, error) {
	return s.db.Keys().Judge(ctx, r)
}

// FindKey implements release.Store.
func (s *Store) FindKey(ctx context.Context, ref idempotency.Ref) (idempotency.Record, bool, error) {
	return s.db.Keys().Find(ctx, ref)
}

// Deploy implements release.Store.
func (s *Store) Deploy(ctx context.Context, r idempotency.Request, m release.Marker) (idempotency.Result, error) {
	result, err := s.db.Keys().Run(ctx, r, func(tx *sql.Tx) (idempotency.Answer, error) {
		crash.Point("marker.claimed")
		if err := createMarker(ctx, sqldb.New(tx), m); err != nil {
			return idempotency.Answer{}, err
		}
		crash.Point("marker.created")
		return idempotency.Answer{
			Status: 201, Resource: idempotency.Resource{Kind: release.Kind, ID: m.ID},
		}, nil
	})
	crash.Point("marker.committed")
	return result, err
}

// CreateMarker implements release.Store.
func (s *Store) CreateMarker(ctx context.Context, m release.Marker) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error { return createMarker(ctx, q, m) })
}

func createMarker(ctx context.Context, q *sqldb.Queries, m release.Marker) error {
	var metadata sql.NullString
	if m.Metadata != nil {
		text, err := json.Marshal(m.Metadata)
		if err != nil {
			return fmt.Errorf("encode the metadata of a release marker: %w", err)
		}
		metadata = sql.NullString{String: string(text), Valid: true}
	}
	err := q.CreateMarker(ctx, sqldb.CreateMarkerParams{
		ID: m.ID, ProjectID: m.ProjectID, Version: m.Version, Environment: m.Environment, Ts: m.TS.UnixMicro(),
		CommitID: sqldb.NullString(m.Commit), Url: sqldb.NullString(m.URL), Title: sqldb.NullString(m.Title),
		Metadata: metadata, Source: string(m.Source), CreatedAt: m.CreatedAt.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create a release marker: %w", err)
	}
	return nil
}

// FindMarker implements release.Store.
func (s *Store) FindMarker(ctx context.Context, projectID, id string) (release.Marker, bool, error) {
	row, err := s.db.Read().FindMarker(ctx, sqldb.FindMarkerParams{ProjectID: projectID, ID: id})
	if errors.Is(err, sql.ErrNoRows) {
		return release.Marker{}, false, nil
	}
	if err != nil {
		return release.Marker{}, false, fmt.Errorf("read a release marker: %w", err)
	}
	m, err := markerOf(&row)
	return m, err == nil, err
}

// ListMarkers implements release.Store.
func (s *Store) ListMarkers(ctx context.Context, p release.ListParams) ([]release.Marker, error) {
	params := sqldb.ListMarkersParams{
		ProjectID: p.ProjectID, FromTs: math.MinInt64, ToTs: math.MaxInt64,
		BeforeTs: math.MaxInt64, BeforeID: p.Before.ID,
		Environment: p.Environment, RowLimit: int32(min(max(p.Limit, 0), math.MaxInt32)),
	}
	if !p.From.IsZero() {
		params.FromTs = ceilMicro(p.From)
	}
	if !p.To.IsZero() {
		params.ToTs = ceilMicro(p.To)
	}
	if p.Before.ID != "" {
		params.BeforeTs = p.Before.TS.UnixMicro()
	}
	if p.Environment == "" {
		params.AnyEnvironment = 1
	}
	rows, err := s.db.Read().ListMarkers(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("read release markers: %w", err)
	}
	markers := make([]release.Marker, len(rows))
	for i := range rows {
		if markers[i], err = markerOf(&rows[i]); err != nil {
			return nil, err
		}
	}
	return markers, nil
}

// ceilMicro is the first microsecond that is not before t.
func ceilMicro(t time.Time) int64 {
	micros := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		micros++
	}
	return micros
}

// DeleteMarker implements release.Store.
func (s *Store) DeleteMarker(ctx context.Context, projectID, id string, at time.Time) (bool, error) {
	var n int64
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		n, err = q.DeleteMarker(ctx, sqldb.DeleteMarkerParams{DeletedAt: sqldb.NullTime(at), ProjectID: projectID, ID: id})
		if err != nil {
			return fmt.Errorf("delete a release marker: %w", err)
		}
		return nil
	})
	return n > 0, err
}

func markerOf(row *sqldb.ReleaseMarker) (release.Marker, error) {
	m := release.Marker{
		ID: row.ID, ProjectID: row.ProjectID, Source: release.Source(row.Source),
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), DeletedAt: sqldb.TimeOf(row.DeletedAt),
		Content: release.Content{
			Version: row.Version, Environment: row.Environment, TS: time.UnixMicro(row.Ts).UTC(),
			Commit: row.CommitID.String, URL: row.Url.String, Title: row.Title.String,
		},
	}
	if row.Metadata.Valid {
		if err := json.Unmarshal([]byte(row.Metadata.String), &m.Metadata); err != nil {
			return m, fmt.Errorf("read the metadata of release marker %s: %w", row.ID, err)
		}
	}
	return m, nil
}
