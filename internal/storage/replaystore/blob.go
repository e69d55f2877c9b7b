package replaystore

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Claim implements replay.Store. A name that is claimed already stays so: a
// COMMIT that was not confirmed may be repeated.
func (s *Store) Claim(ctx context.Context, names []string, at time.Time) error {
	err := s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		args := make([][]any, len(names))
		for i, name := range names {
			args[i] = []any{name, at.UnixMicro()}
		}
		return b.Run(ctx, each(claimBlobText, args))
	})
	if err != nil {
		return fmt.Errorf("claim blobs: %w", err)
	}
	return nil
}

// Doom implements replay.Store.
func (s *Store) Doom(ctx context.Context, before, at time.Time, limit int) (int, error) {
	var n int64
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		n, err = q.DoomReplayBlobs(ctx, sqldb.DoomReplayBlobsParams{At: at.UnixMicro(), Before: before.UnixMicro(), Size: sizeOf(limit)})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("doom blobs: %w", err)
	}
	return int(n), nil
}

// ListDoomed implements replay.Store.
func (s *Store) ListDoomed(ctx context.Context, after string, limit int) ([]replay.Doomed, error) {
	rows, err := s.db.Read().ListDoomedReplayBlobs(ctx, sqldb.ListDoomedReplayBlobsParams{After: after, Size: sizeOf(limit)})
	if err != nil {
		return nil, fmt.Errorf("read doomed blobs: %w", err)
	}
	all := make([]replay.Doomed, len(rows))
	for i, row := range rows {
		all[i] = replay.Doomed{Name: row.Name, Since: row.Since}
	}
	return all, nil
}

// Forget implements replay.Store.
func (s *Store) Forget(ctx context.Context, blobs []replay.Doomed) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error {
		for _, one := range blobs {
			if err := q.ForgetReplayBlob(ctx, sqldb.ForgetReplayBlobParams{Name: one.Name, Since: one.Since}); err != nil {
				return fmt.Errorf("forget a blob: %w", err)
			}
		}
		return nil
	})
}
