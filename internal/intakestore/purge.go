package intakestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/actionpulse/actionpulse/internal/crash"
)

// maxViews is more than there ever are snapshots at once.
const maxViews = math.MaxInt32

// purgeLook is how often Purge looks for files that are yet to be deleted, in
// case it was not told.
const purgeLook = 100 * time.Millisecond

// Purge returns once nothing of what was trimmed before is left in the files of
// the store. Trimming only hides records: they stay in tables until those are
// compacted, in the logs that the engine keeps to write them again, and for as
// long as a snapshot sees them. Purge waits for the snapshots that are open, and
// later ones wait for it. Intake goes on meanwhile. After an error it can be
// repeated.
func (s *Store) Purge(ctx context.Context) error {
	if err := s.views.Acquire(ctx, maxViews); err != nil {
		return fmt.Errorf("purge intake store: %w", err)
	}
	defer s.views.Release(maxViews)
	if err := s.purge(ctx); err != nil {
		return fmt.Errorf("purge intake store: %w", err)
	}
	return nil
}

func (s *Store) purge(ctx context.Context) error {
	end := recordKey(s.trimmed.Load() + 1)
	// Twice: the first flush ends the log that the records are in, but the next
	// log may be one that was used before and not emptied yet.
	for range 2 {
		if err := s.turnLog(end); err != nil {
			return err
		}
	}
	crash.Point("intake.flushed")
	if err := s.db.Compact(ctx, recordKey(0), end, false); err != nil {
		return err
	}
	crash.Point("intake.compacted")
	return s.awaitDeletion(ctx)
}

// turnLog has the engine begin another log and write all that is in the earlier
// ones into tables, and empties those. It writes once more that the records are
// deleted: the mark of that has to sink through all tables that may hold one.
func (s *Store) turnLog(end []byte) error {
	if err := s.db.DeleteRange(recordKey(0), end, pebble.NoSync); err != nil {
		return err
	}
	last := s.files.log.Load()
	if err := s.db.Flush(); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(s.dir, "*.log"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		var number uint64
		if _, err := fmt.Sscanf(filepath.Base(path), "%d.log", &number); err != nil || number > last {
			continue
		}
		// Nobody needs it: it is kept to be written again under another name,
		// which may have happened since, or is being deleted.
		if err := os.Truncate(path, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// awaitDeletion waits until the tables that are not in use now are deleted.
func (s *Store) awaitDeletion(ctx context.Context) error {
	obsolete, err := s.obsoleteTables()
	if err != nil {
		return err
	}
	for {
		for path := range obsolete {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				delete(obsolete, path)
			} else if err != nil {
				return err
			}
		}
		if len(obsolete) == 0 {
			return nil
		}
		select {
		case <-s.files.deleted:
		case <-time.After(purgeLook):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// obsoleteTables lists the table files that are there and not in use.
func (s *Store) obsoleteTables() (map[string]bool, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.sst"))
	if err != nil {
		return nil, err
	}
	obsolete := map[string]bool{}
	for _, path := range paths {
		obsolete[path] = true
	}
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}
	for _, tables := range levels {
		for i := range tables {
			delete(obsolete, s.tablePath(uint64(tables[i].BackingSSTNum)))
		}
	}
	return obsolete, nil
}

func (s *Store) tablePath(number uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%06d.sst", number))
}
