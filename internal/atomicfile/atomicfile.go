// Package atomicfile writes small files so that they are there whole or not at
// all, also after a power cut. It never reads one.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces a file of mode 0600 and returns once that is on disk.
func Write(path string, content []byte) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return errors.Join(WriteIn(root, filepath.Base(path), content), root.Close())
}

// WriteIn is Write for a file below a folder, which name cannot lead out of.
func WriteIn(root *os.Root, name string, content []byte) error {
	if err := write(root, name, content); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	return nil
}

// Temporary is the name that a file has until it is there: a crash may leave it.
func Temporary(name string) string { return name + ".new" }

func write(root *os.Root, name string, content []byte) error {
	temporary := Temporary(name)
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary) // it may be gone; the first error says what is wrong
		return err
	}
	return SyncFolder(root, filepath.Dir(name))
}

// SyncFolder returns once the names in a folder below root are on disk: those
// that were made as well as those that were removed.
func SyncFolder(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
