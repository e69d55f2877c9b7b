package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Progress is told after each part of a file how many bytes have been copied
// in all.
type Progress func(path string, bytes int64)

// copyBlock is how much is copied between two looks at the context.
const copyBlock = 4 << 20

// copier copies files and counts bytes.
type copier struct {
	progress Progress
	bytes    int64
}

// copy writes a file of mode 0600 that must not exist, and returns once it is
// on disk. The file's folder is made if need be.
func (c *copier) copy(ctx context.Context, from, to, name string) (f File, err error) {
	in, err := os.Open(from)
	if err != nil {
		return f, fmt.Errorf("copy %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return f, fmt.Errorf("copy %s: %w", name, err)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return f, fmt.Errorf("copy %s: %w", name, err)
	}
	f, err = c.stream(ctx, in, out, name)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return f, fmt.Errorf("copy %s: %w", name, err)
	}
	return f, nil
}

// stream copies and takes the checksum of what it has read. A nil out only
// reads.
func (c *copier) stream(ctx context.Context, in io.Reader, out io.Writer, name string) (File, error) {
	f, sum := File{Path: name}, sha256.New()
	to := io.Writer(sum)
	if out != nil {
		to = io.MultiWriter(out, sum)
	}
	for {
		if ctx.Err() != nil {
			return f, context.Cause(ctx)
		}
		n, err := io.CopyN(to, in, copyBlock)
		f.Bytes += n
		c.bytes += n
		if c.progress != nil {
			c.progress(name, c.bytes)
		}
		if errors.Is(err, io.EOF) {
			f.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return f, nil
		}
		if err != nil {
			return f, err
		}
	}
}

// list returns the regular files below a folder, by path with slashes, in
// order. A file that vanishes meanwhile is left out. The folder itself may be a
// symbolic link.
func list(dir string) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("list a folder: %w", err)
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return files, nil
}

// syncFolders makes the names in a folder, and in all below it, durable.
func syncFolders(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncFolder(path)
	})
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// occupied returns ErrOccupied unless a path is absent or a folder that holds
// nothing but some names.
func occupied(dir string, but ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the target: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(but, e.Name()) })
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s holds %s", ErrOccupied, dir, entries[0].Name())
	}
	return nil
}

// Clear removes everything in a folder but the files that are to be kept.
func Clear(dir string, keep ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("clear %s: %w", dir, err)
	}
	for _, e := range entries {
		if slices.Contains(keep, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("clear %s: %w", dir, err)
		}
	}
	return nil
}
