package intakestore

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Checkpoint puts a copy of the store as it is now into a folder that must not
// exist, on the same file system: tables are linked, the log is copied. Groups
// that are being written may or may not be in it, what was acknowledged is. It
// returns the last position that was. Commits go on meanwhile; it waits while Purge
// works, which empties logs that the copy may need.
func (s *Store) Checkpoint(ctx context.Context, dir string) (acknowledged uint64, err error) {
	if err := s.views.Acquire(ctx, 1); err != nil {
		return 0, fmt.Errorf("checkpoint intake store: %w", err)
	}
	defer s.views.Release(1)
	acknowledged = s.Durable()
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return 0, fmt.Errorf("checkpoint intake store: %w", err)
	}
	return acknowledged, nil
}

// WriteMark writes the mark that belongs to a copy of a store, which says what
// had been acknowledged.
func WriteMark(path string, acknowledged uint64) error { return createMark(path, acknowledged) }
