package flowstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Find implements flow.Store.
func (s *Store) Find(ctx context.Context, projectID, slug string, number int64) (flow.Flow, bool, error) {
	f, found, err := s.Look(ctx, projectID, slug)
	if err != nil || !found || number < 0 || number > f.Latest {
		return flow.Flow{}, false, err
	}
	if number == 0 {
		number = f.Latest
	}
	if f.Shown, err = version(ctx, s.db.Read(), f.ID, number); err != nil {
		return flow.Flow{}, false, err
	}
	return f, true, nil
}

// Look implements flow.Store.
func (s *Store) Look(ctx context.Context, projectID, slug string) (flow.Flow, bool, error) {
	row, err := sqldb.New(s.db.Often()).FindFlow(ctx, sqldb.FindFlowParams{ProjectID: projectID, Slug: slug})
	if errors.Is(err, sql.ErrNoRows) {
		return flow.Flow{}, false, nil
	}
	if err != nil {
		return flow.Flow{}, false, fmt.Errorf("read a flow: %w", err)
	}
	return flowOf(&row), true, nil
}

// version reads a version that exists.
func version(ctx context.Context, q *sqldb.Queries, flowID, number int64) (flow.Published, error) {
	row, err := q.FindFlowVersion(ctx, sqldb.FindFlowVersionParams{FlowID: flowID, Version: number})
	if err != nil {
		return flow.Published{}, fmt.Errorf("read version %d of a flow: %w", number, err)
	}
	return flow.Published{Number: number, Definition: []byte(row.Definition), CreatedAt: timeOf(row.CreatedAt)}, nil
}

// List implements flow.Store.
func (s *Store) List(ctx context.Context, projectID, after string, limit int) ([]flow.Flow, error) {
	rows, err := s.db.Read().ListFlows(ctx, sqldb.ListFlowsParams{ProjectID: projectID, Slug: after, Limit: sizeOf(limit)})
	if err != nil {
		return nil, fmt.Errorf("read flows: %w", err)
	}
	list := make([]flow.Flow, len(rows))
	for i := range rows {
		r := &rows[i]
		list[i] = flowOf(&sqldb.Flow{
			ID: r.ID, ProjectID: r.ProjectID, Slug: r.Slug, LatestVersion: r.LatestVersion, PinnedVersion: r.PinnedVersion,
			ArchivedAt: r.ArchivedAt,
		})
		list[i].Shown = flow.Published{Number: r.LatestVersion, CreatedAt: timeOf(r.VersionCreatedAt)}
	}
	return list, nil
}

// Versions implements flow.Store.
func (s *Store) Versions(ctx context.Context, flowID int64, p flow.VersionsParams) ([]flow.Published, error) {
	before := p.Before
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := s.db.Read().ListFlowVersions(ctx, sqldb.ListFlowVersionsParams{FlowID: flowID, Before: before, Size: sizeOf(p.Limit)})
	if err != nil {
		return nil, fmt.Errorf("read versions of a flow: %w", err)
	}
	list := make([]flow.Published, len(rows))
	for i, r := range rows {
		list[i] = flow.Published{Number: r.Version, CreatedAt: timeOf(r.CreatedAt)}
	}
	return list, nil
}

// Load implements flow.Store.
func (s *Store) Load(ctx context.Context, flowID, number int64) (flow.Version, error) {
	row, err := s.db.Read().LoadFlowVersion(ctx, sqldb.LoadFlowVersionParams{FlowID: flowID, Version: number})
	if err != nil {
		return flow.Version{}, fmt.Errorf("read version %d of flow %d: %w", number, flowID, err)
	}
	return flow.Version{
		FlowID: flowID, Number: number, ProjectID: row.ProjectID, Slug: row.Slug,
		Definition: []byte(row.Definition), CreatedAt: timeOf(row.CreatedAt),
	}, nil
}

func flowOf(row *sqldb.Flow) flow.Flow {
	return flow.Flow{
		ID: row.ID, Slug: row.Slug, Latest: row.LatestVersion, Pinned: row.PinnedVersion.Int64, ArchivedAt: sqldb.TimeOf(row.ArchivedAt),
	}
}

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// sizeOf is a page's size as queries take it.
func sizeOf(limit int) int32 { return int32(min(max(limit, 0), math.MaxInt32)) }
