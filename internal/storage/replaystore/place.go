package replaystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// TakePlace implements replay.Home. The one row judges who was first.
func (s *Store) TakePlace(ctx context.Context, id [16]byte) (replay.Location, error) {
	if err := s.db.Write(ctx, func(q *sqldb.Queries) error { return q.TakeReplayPlace(ctx, id[:]) }); err != nil {
		return replay.Location{}, fmt.Errorf("take the place of blobs: %w", err)
	}
	place, found, err := s.FindPlace(ctx)
	if err == nil && !found {
		err = errors.New("take the place of blobs: the row is gone")
	}
	return place, err
}

// FindPlace implements replay.Home.
func (s *Store) FindPlace(ctx context.Context) (p replay.Location, found bool, err error) {
	row, err := s.db.Read().FindReplayPlace(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return p, false, nil
	case err != nil:
		return p, false, fmt.Errorf("read where blobs are: %w", err)
	case len(row.ID) != len(p.ID) || len(row.MovedFrom) != len(p.From):
		return p, false, fmt.Errorf("the ids of the place of blobs have %d and %d bytes", len(row.ID), len(row.MovedFrom))
	}
	return replay.Location{ID: [16]byte(row.ID), From: [16]byte(row.MovedFrom)}, true, nil
}

// MovePlace implements replay.Home.
func (s *Store) MovePlace(ctx context.Context, from, to [16]byte) error {
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		return q.MoveReplayPlace(ctx, sqldb.MoveReplayPlaceParams{FromID: from[:], ToID: to[:]})
	})
	if err != nil {
		return fmt.Errorf("move the place of blobs: %w", err)
	}
	return nil
}
