package flowstore

import (
	"context"
	"time"

	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Pin implements flow.Store.
func (s *Store) Pin(ctx context.Context, projectID, slug string, number int64) (bool, error) {
	return s.change(ctx, func(q *sqldb.Queries) (int64, error) {
		if number == 0 {
			return q.UnpinFlow(ctx, sqldb.UnpinFlowParams{ProjectID: projectID, Slug: slug})
		}
		return q.PinFlow(ctx, sqldb.PinFlowParams{ProjectID: projectID, Slug: slug, Version: number})
	})
}

// Archive implements flow.Store.
func (s *Store) Archive(ctx context.Context, projectID, slug string, at time.Time) (bool, error) {
	return s.change(ctx, func(q *sqldb.Queries) (int64, error) {
		if at.IsZero() {
			return q.UnarchiveFlow(ctx, sqldb.UnarchiveFlowParams{ProjectID: projectID, Slug: slug})
		}
		return q.ArchiveFlow(ctx, sqldb.ArchiveFlowParams{ProjectID: projectID, Slug: slug, At: at.UnixMicro()})
	})
}

// change makes one change and says whether it has found what to change.
func (s *Store) change(ctx context.Context, update func(*sqldb.Queries) (int64, error)) (bool, error) {
	var n int64
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		n, err = update(q)
		return err
	})
	return n > 0 && err == nil, err
}
