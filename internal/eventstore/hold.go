package eventstore

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Hold keeps everybody from writing: while it lasts, the store's files stand
// still and hold everything that was committed. Readers go on.
type Hold struct {
	release func()
	files   []string
}

// Hold waits for the writes under way and keeps further ones waiting until it
// is released. The files may be copied by another process only: when this one
// opens and closes one of them, it loses its lock on it.
func (s *Store) Hold(ctx context.Context) (*Hold, error) {
	s.write.Lock()
	if s.closed {
		s.write.Unlock()
		return nil, ErrClosed
	}
	// What the write-ahead log holds need not be in the other file: together
	// they are what a killed process leaves. It only makes the copy smaller.
	if _, err := s.writer.Exec(context.WithoutCancel(ctx), "CHECKPOINT"); err != nil {
		s.opts.Log.DebugContext(ctx, "event store could not be checkpointed before it was held", slog.Any("error", err))
	}
	h := &Hold{release: sync.OnceFunc(s.write.Unlock), files: []string{filepath.Base(s.opts.Path)}}
	switch size, err := s.WALBytes(); {
	case err != nil:
		h.Release()
		return nil, fmt.Errorf("hold event store: %w", err)
	case size > 0:
		h.files = append(h.files, h.files[0]+walSuffix)
	}
	return h, nil
}

// Files are the names of the files that a copy consists of, in the store's
// folder.
func (h *Hold) Files() []string { return h.files }

// Release lets writers go on. It may be called several times.
func (h *Hold) Release() { h.release() }

// walSuffix is what DuckDB adds to the name of a database for that of its
// write-ahead log.
const walSuffix = ".wal"

// FilesOf returns the paths of the files that a store that nobody has open
// consists of.
func FilesOf(path string) []string {
	files := []string{path}
	if _, err := os.Stat(path + walSuffix); err == nil {
		files = append(files, path+walSuffix)
	}
	return files
}
