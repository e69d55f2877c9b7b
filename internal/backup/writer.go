package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/crash"
)

// Writer fills the folder of a new backup. What it has written is no backup
// until Finish has returned.
type Writer struct {
	dir    string
	copier copier
	files  []File
	// made are the names at the top of the folder that this writer has put
	// there.
	made []string
}

// claimFile is in a folder for as long as a writer fills it: of several only one
// can have made it.
const claimFile = "WRITING"

// Create makes the folder of a backup, for its owner only, or takes an empty
// one, and claims it until Finish or Discard. It returns ErrOccupied if there is
// something in it, or another writer has claimed it.
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
	w := &Writer{dir: dir, copier: copier{progress: progress}}
	if err := w.claim(); err != nil {
		return nil, err
	}
	return w, nil
}

// claim makes sure that nobody else writes to the folder: what was seen empty
// may have been filled since.
func (w *Writer) claim() error {
	file, err := os.OpenFile(filepath.Join(w.dir, claimFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: another backup is being written to %s", ErrOccupied, w.dir)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("claim the folder of the backup: %w", err)
	}
	w.made = append(w.made, claimFile)
	if err := occupied(w.dir, claimFile); err != nil {
		return errors.Join(err, w.Discard())
	}
	return nil
}

// own makes sure that what is about to be written is below a name at the top of
// the folder that this writer has put there. It returns ErrOccupied if somebody
// else has.
func (w *Writer) own(name string) error {
	top, _, nested := strings.Cut(name, "/")
	if nested && slices.Contains(w.made, top) {
		return nil
	}
	path := filepath.Join(w.dir, top)
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
		if nested {
			err = os.Mkdir(path, 0o700)
		}
	} else if err == nil {
		err = os.ErrExist
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%w: %s holds %s", ErrOccupied, w.dir, top)
	case err != nil:
		return fmt.Errorf("make a folder of the backup: %w", err)
	}
	w.made = append(w.made, top)
	return nil
}

// Path returns where a file of the backup is, whose folder exists then. It is
// for files that something else writes, to be taken in by Add.
func (w *Writer) Path(name string) (string, error) {
	if err := w.own(name); err != nil {
		return "", err
	}
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make a folder of the backup: %w", err)
	}
	return path, nil
}

// Copy takes a file in under a name. Nobody may write to it meanwhile.
func (w *Writer) Copy(ctx context.Context, from, name string) error {
	if err := w.own(name); err != nil {
		return err
	}
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

// Discard removes what this writer has written and nothing else.
func (w *Writer) Discard() error {
	var errs []error
	// The claim, which was made first, goes last.
	for _, name := range slices.Backward(w.made) {
		errs = append(errs, os.RemoveAll(filepath.Join(w.dir, name)))
	}
	w.made = nil
	return errors.Join(errs...)
}

// Finish makes what was written a backup, which m describes but for its files.
// If that fails, everything that was written is removed: what looks like a
// backup is one. The manifest is the last thing that is written, and nothing can
// fail after it. Files that are not there any more as they were written are
// ErrDamaged.
func (w *Writer) Finish(m Manifest) (*Manifest, error) {
	slices.SortFunc(w.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	m.Version, m.Secrets, m.Files = FormatVersion, true, w.files
	if err := w.seal(&m); err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	return &m, nil
}

// seal writes the manifest, if its files are there. The claim goes before: nobody
// else claims a folder with files in it.
func (w *Writer) seal(m *Manifest) error {
	if err := m.compareFiles(w.dir); err != nil {
		return err
	}
	for _, name := range []string{atomicfile.Temporary(ManifestFile), ManifestFile} {
		if err := w.own(name); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(w.dir, claimFile)); err != nil {
		return fmt.Errorf("give up the claim: %w", err)
	}
	if err := errors.Join(syncFolders(w.dir), syncFolder(filepath.Dir(w.dir))); err != nil {
		return err
	}
	crash.Point("backup.written")
	return m.write(w.dir)
}
