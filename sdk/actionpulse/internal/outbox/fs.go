package outbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// FS is what a folder needs of a file system.
type FS interface {
	// MakeDir makes a folder of mode 0700 and those above it, unless they are
	// there, so that they survive a crash.
	MakeDir(path string) error
	// OpenFile opens a file for reading and writing, and makes it with mode
	// 0600 if it is not there.
	OpenFile(path string) (File, error)
	ReadFile(path string) ([]byte, error)
	// List returns the names in a folder, in any order.
	List(dir string) ([]string, error)
	Remove(path string) error
	Rename(from, to string) error
	// SyncDir makes what was made, renamed and removed in a folder survive a
	// crash.
	SyncDir(dir string) error
	// Lock takes the lock that a file stands for until it is closed or the
	// process ends; ErrLocked if somebody has it.
	Lock(path string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Check returns an error if the path that was opened does not lead to the
	// file any more: it was removed, or is another one.
	Check() error
	Truncate(size int64) error
	// Sync returns once what was written is on disk.
	Sync() error
}

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// systemFS is the operating system's.
type systemFS struct{}

func (s systemFS) MakeDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return &os.PathError{Op: "mkdir", Path: path, Err: errors.New("is not a folder")}
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if err := s.MakeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return s.SyncDir(parent)
}

func (systemFS) OpenFile(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}

func (systemFS) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

func (systemFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (systemFS) Remove(path string) error { return os.Remove(path) }

func (systemFS) Rename(from, to string) error { return os.Rename(from, to) }

func (systemFS) SyncDir(dir string) error {
	if runtime.GOOS == "windows" { // which has no such thing
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (systemFS) Lock(path string) (io.Closer, error) { return lockFile(path) }

type systemFile struct{ *os.File }

func (f systemFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f systemFile) Check() error {
	own, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(f.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(own, there) {
		return &os.PathError{Op: "check", Path: f.Name(), Err: errors.New("is another file by now")}
	}
	return nil
}
