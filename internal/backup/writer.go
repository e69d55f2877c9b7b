package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/crash"
)

// Writer fills the folder of a new backup. What it has written is no backup
// until Finish has returned.
type Writer struct {
	dir    string
	copier copier
	files  []File
}

// Create makes the folder of a backup, for its owner only, or takes an empty
// one. It returns ErrOccupied if there is something in it.
func Create(dir string, progress Progress) (*Writer, error) {
	if err := occupied(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the backup: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder
		return nil, fmt.Errorf("make the folder of the backup: %w", err)
	}
	return &Writer{dir: dir, copier: copier{progress: progress}}, nil
}

// Path returns where a file of the backup is, whose folder exists then. It is
// for files that something else writes, to be taken in by Add.
func (w *Writer) Path(name string) (string, error) {
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make a folder of the backup: %w", err)
	}
	return path, nil
}

// Copy takes a file in under a name. Nobody may write to it meanwhile.
func (w *Writer) Copy(ctx context.Context, from, name string) error {
	f, err := w.copier.copy(ctx, from, filepath.Join(w.dir, filepath.FromSlash(name)), name)
	if err != nil {
		return err
	}
	w.files = append(w.files, f)
	return nil
}

// CopyIfThere is Copy for a file that need not exist.
func (w *Writer) CopyIfThere(ctx context.Context, from, name string) error {
	err := w.Copy(ctx, from, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// CopyFolder takes in every file below a folder that skip does not leave out,
// by its path within it.
func (w *Writer) CopyFolder(ctx context.Context, from, name string, skip func(path string) bool) error {
	files, err := list(from)
	if err != nil {
		return err
	}
	for _, path := range files {
		if skip != nil && skip(path) {
			continue
		}
		if err := w.Copy(ctx, filepath.Join(from, filepath.FromSlash(path)), name+"/"+path); err != nil {
			return err
		}
	}
	return nil
}

// Add takes in a file that something else has written to its Path, and makes
// it durable and its owner's only.
func (w *Writer) Add(ctx context.Context, name string) (err error) {
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("take in %s: %w", name, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("take in %s: %w", name, err)
	}
	f, err := w.copier.stream(ctx, file, nil, name)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("take in %s: %w", name, err)
	}
	w.files = append(w.files, f)
	return nil
}

// Discard removes what was written, so that the folder is empty again.
func (w *Writer) Discard() error { return Clear(w.dir) }

// Finish makes what was written a backup, which m describes but for its files.
// If that fails, everything is removed: what looks like a backup is one. The
// manifest is the last thing that is written, and nothing can fail after it.
func (w *Writer) Finish(m Manifest) (*Manifest, error) {
	slices.SortFunc(w.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	m.Version, m.Secrets, m.Files = FormatVersion, true, w.files
	err := syncFolders(w.dir)
	if err == nil {
		err = syncFolder(filepath.Dir(w.dir))
	}
	if err == nil {
		crash.Point("backup.written")
		err = m.write(w.dir)
	}
	if err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	return &m, nil
}
