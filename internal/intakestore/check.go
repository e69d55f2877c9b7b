package intakestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"
)

// checkTables reads every live table once and compares its checksums: the
// engine would notice a damaged block only when it happens to need it.
func (s *Store) checkTables(dir string, opts *pebble.Options) error {
	levels, err := s.db.SSTables()
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	var group errgroup.Group
	group.SetLimit(4)
	for _, tables := range levels {
		for _, table := range tables {
			name := filepath.Join(dir, fmt.Sprintf("%06d.sst", table.BackingSSTNum))
			group.Go(func() error { return checkTable(name, opts) })
		}
	}
	return group.Wait()
}

func checkTable(name string, opts *pebble.Options) error {
	file, err := vfs.Default.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // compacted away since, which has read and checked it all
	}
	if err != nil {
		return fmt.Errorf("check table: %w", err)
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return joinClose(fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Base(name), err), file)
	}
	reader, err := sstable.NewReader(context.Background(), readable, opts.MakeReaderOptions())
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Base(name), err), readable.Close())
	}
	if err := reader.ValidateBlockChecksums(); err != nil {
		return joinClose(fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Base(name), err), reader)
	}
	return joinClose(nil, reader)
}
