package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
)

// Folder keeps blobs as files of mode 0600 below a folder. A file is written
// beside its place and gets its name there: it never moves between folders, so
// that one sync of its folder makes it last.
type Folder struct {
	root *os.Root
	// made are folders that are known to be on disk.
	made sync.Map
}

var _ Store = (*Folder)(nil)

// OpenFolder opens a folder that is there.
func OpenFolder(path string) (*Folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the folder of blobs: %w", err)
	}
	return &Folder{root: root}, nil
}

// Put implements Store.
func (f *Folder) Put(_ context.Context, name string, content []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := f.ensure(path.Dir(name)); err != nil {
		return fmt.Errorf("make the folder of a blob: %w", err)
	}
	if err := atomicfile.WriteIn(f.root, name, content); err != nil {
		return fmt.Errorf("write a blob: %w", err)
	}
	return nil
}

// ensure makes a folder and returns once it is on disk, with those above it.
// Folders are never removed, so what was there once is there.
func (f *Folder) ensure(folder string) error {
	if _, ok := f.made.Load(folder); ok || folder == "." {
		return nil
	}
	above := path.Dir(folder)
	if err := f.ensure(above); err != nil {
		return err
	}
	if err := f.root.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Also when it was there: whoever has made it may have been killed since.
	if err := atomicfile.SyncFolder(f.root, above); err != nil {
		return err
	}
	f.made.Store(folder, true)
	return nil
}

// Get implements Store.
func (f *Folder) Get(_ context.Context, name string) (content []byte, err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open a blob: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return readAll(file)
}

// readAll reads a blob, unless it is larger than any that is written.
func readAll(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxBlob+1))
	if err != nil {
		return nil, fmt.Errorf("read a blob: %w", err)
	}
	if len(content) > maxBlob {
		return nil, fmt.Errorf("read a blob: it has more than %d bytes", maxBlob)
	}
	return content, nil
}

// Delete implements Store.
func (f *Folder) Delete(_ context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	removed := false
	for _, one := range []string{name, atomicfile.Temporary(name)} {
		err := f.root.Remove(one)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete a blob: %w", err)
		}
		removed = removed || err == nil
	}
	if !removed {
		return nil
	}
	if err := atomicfile.SyncFolder(f.root, path.Dir(name)); err != nil {
		return fmt.Errorf("delete a blob: %w", err)
	}
	return nil
}

// Close implements Store.
func (f *Folder) Close() error { return f.root.Close() }
