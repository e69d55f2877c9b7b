// Package flowstore keeps flows and their versions in the transactional store.
// It decides nothing about what a definition means.
//
// Invariants:
//   - a flow's row is locked by who adds a version to it, so the numbers of its
//     versions have no gaps and none is given twice;
//   - a version is never changed, which the schema enforces as well.
package flowstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Store implements flow.Store.
type Store struct{ db *sqldb.DB }

var _ flow.Store = (*Store)(nil)

// New returns a Store that reads and writes db, which stays the caller's to
// close.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// Publish implements flow.Store.
func (s *Store) Publish(ctx context.Context, v flow.NewVersion) (f flow.Flow, created bool, err error) {
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		f, created, err = publish(ctx, q, v)
		return err
	})
	return f, created && err == nil, err
}

func publish(ctx context.Context, q *sqldb.Queries, v flow.NewVersion) (flow.Flow, bool, error) {
	n, err := q.CreateFlow(ctx, sqldb.CreateFlowParams{ProjectID: v.ProjectID, Slug: v.Slug, CreatedAt: v.CreatedAt.UnixMicro()})
	if err != nil {
		return flow.Flow{}, false, fmt.Errorf("create a flow: %w", err)
	}
	if n == 0 {
		// Others may have published since this transaction began: what is
		// read after the lock is the latest.
		if _, err := q.LockFlow(ctx, sqldb.LockFlowParams{ProjectID: v.ProjectID, Slug: v.Slug}); err != nil {
			return flow.Flow{}, false, fmt.Errorf("lock a flow: %w", err)
		}
	}
	row, err := q.FindFlow(ctx, sqldb.FindFlowParams{ProjectID: v.ProjectID, Slug: v.Slug})
	if err != nil {
		return flow.Flow{}, false, fmt.Errorf("read a flow: %w", err)
	}
	f := flowOf(&row)
	if n == 0 {
		if f.Shown, err = version(ctx, q, f.ID, f.Latest); err != nil {
			return flow.Flow{}, false, err
		}
		if !f.ArchivedAt.IsZero() || string(f.Shown.Definition) == string(v.Definition) {
			return f, false, nil
		}
		f.Latest++
		if err := q.AdvanceFlow(ctx, sqldb.AdvanceFlowParams{ID: f.ID, LatestVersion: f.Latest}); err != nil {
			return flow.Flow{}, false, fmt.Errorf("advance a flow: %w", err)
		}
	}
	err = q.CreateFlowVersion(ctx, sqldb.CreateFlowVersionParams{
		FlowID: f.ID, Version: f.Latest, Definition: string(v.Definition), CreatedAt: v.CreatedAt.UnixMicro(),
	})
	if err != nil {
		return flow.Flow{}, false, fmt.Errorf("create a version of a flow: %w", err)
	}
	f.Shown = flow.Published{Number: f.Latest, Definition: v.Definition, CreatedAt: v.CreatedAt}
	return f, true, nil
}
