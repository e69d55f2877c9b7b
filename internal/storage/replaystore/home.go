package replaystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// TakeFolder implements replay.Home. The one row judges who was first.
func (s *Store) TakeFolder(ctx context.Context, server [16]byte) ([16]byte, error) {
	if err := s.db.Write(ctx, func(q *sqldb.Queries) error { return q.TakeReplayFolder(ctx, server[:]) }); err != nil {
		return server, fmt.Errorf("take the folder of blobs: %w", err)
	}
	holder, found, err := s.FindFolder(ctx)
	if err == nil && !found {
		err = errors.New("take the folder of blobs: the row is gone")
	}
	return holder, err
}

// FindFolder implements replay.Home.
func (s *Store) FindFolder(ctx context.Context) (server [16]byte, found bool, err error) {
	row, err := s.db.Read().FindReplayFolder(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return server, false, nil
	case err != nil:
		return server, false, fmt.Errorf("read whose folder holds the blobs: %w", err)
	case len(row) != len(server):
		return server, false, fmt.Errorf("the id of the server that holds the blobs has %d bytes", len(row))
	}
	return [16]byte(row), true, nil
}
