package intakestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	pebblerecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"

	"github.com/actionpulse/actionpulse/internal/record"
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

// checkManifest reads the engine's list of its files to the end and says
// whether it is whole. The engine takes a damaged end for an edit that was
// under way when the machine died, and opens without it. That is right only if
// it was so: else a table is lost whose log is gone.
func checkManifest(dir string) (whole bool, err error) {
	found, err := pebble.Peek(dir, vfs.Default)
	if err != nil {
		return false, fmt.Errorf("look for the intake store: %w", err)
	}
	if !found.Exists {
		return false, fmt.Errorf("%w: it has no manifest", ErrDamaged)
	}
	file, err := os.Open(found.ManifestFilename)
	if err != nil {
		return false, fmt.Errorf("check manifest: %w", err)
	}
	edits := pebblerecord.NewReader(file, 0)
	for err == nil {
		var edit io.Reader
		if edit, err = edits.Next(); err == nil {
			_, err = io.Copy(io.Discard, edit)
		}
	}
	return err == io.EOF, joinClose(nil, file) //nolint:errorlint // documented to be returned as it is
}

// checkNewest compares the newest segment with the number of claims that every
// group records for it: what the engine has lost unawares is missing there.
func (s *Store) checkNewest(want int) error {
	got := 0
	if n := len(s.segments); n > 0 {
		got = s.segments[n-1].count
	}
	if got != want {
		return fmt.Errorf("%w: the newest segment has %d claims of %d", ErrDamaged, got, want)
	}
	return nil
}

// checkSealed counts the claims of the other segments, which takes long.
func (s *Store) checkSealed() error {
	for _, seg := range s.segments {
		if !seg.sealed {
			continue
		}
		want := seg.count
		if err := s.scanFilter(seg); err != nil {
			return err
		}
		if seg.count != want {
			return fmt.Errorf("%w: segment %d has %d claims of %d", ErrDamaged, seg.id, seg.count, want)
		}
	}
	return nil
}

// checkRecords makes sure that no record is missing between the first and the
// last.
func (s *Store) checkRecords() error {
	if s.trimmed.Load() >= s.state.Last {
		return nil
	}
	return scanRecords(s.db, s.trimmed.Load()+1, s.state.Last, func(record.Record) (bool, error) { return true, nil })
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
