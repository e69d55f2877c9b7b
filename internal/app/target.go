package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/actionpulse/actionpulse/internal/backup"
)

// spareBytes is what must stay free beyond the size of a backup.
const spareBytes = 64 << 20

// refuseTarget gives a target that is not free the exit code of a folder that
// cannot be used.
func refuseTarget(err error) error {
	if errors.Is(err, backup.ErrOccupied) {
		return refuse("%w", err)
	}
	return err
}

// realPaths replaces paths by those without symbolic links that they lead to;
// what is not there yet is below one.
func realPaths(paths ...*string) error {
	for _, path := range paths {
		actual, err := realPath(*path)
		if err != nil {
			return fmt.Errorf("follow %s: %w", *path, err)
		}
		*path = actual
	}
	return nil
}

func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	actual, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, os.ErrNotExist) || path == filepath.Dir(path) {
		return actual, err
	}
	parent, err := realPath(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// checkTarget refuses a target within the data folder, or around it, one within
// another backup, and one on a disk without room. Both paths are without
// symbolic links. It returns about how many bytes will be copied.
func (f folder) checkTarget(out string) (need int64, err error) {
	if within(string(f), out) || within(out, string(f)) {
		return 0, refuse("a backup must lie beside the data folder, not within it or around it")
	}
	if err := checkAround(out); err != nil {
		return 0, err
	}
	if need, err = f.bytes(); err != nil {
		return 0, err
	}
	return need, checkSpace(out, need)
}

// checkAround refuses a target within a backup, which a file more would make a
// damaged one.
func checkAround(target string) error {
	if at, found := backup.Around(target); found {
		return refuse("%s lies within the backup %s, which it would damage", target, at)
	}
	return nil
}

func within(dir, path string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(relative)
}

// checkSpace refuses a target whose file system has no room for so many bytes.
func checkSpace(target string, need int64) error {
	at := target
	for {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	free, _, err := freeSpace(at)
	if err != nil {
		return err
	}
	if uint64(need)+spareBytes > free {
		return refuse("%s has %d MB free, and %d MB are needed", at, free>>20, (need+spareBytes)>>20)
	}
	return nil
}

// bytes returns about how large a backup of the folder is, without a dump. Parts
// that are symbolic links count with what they lead to.
func (f folder) bytes() (n int64, err error) {
	roots := []string{string(f)}
	for _, part := range []string{intakeDir, eventsDir, replaysDir} {
		if actual, err := filepath.EvalSymlinks(f.path(part)); err == nil && !within(string(f), actual) {
			roots = append(roots, actual)
		}
	}
	for _, root := range roots {
		size, err := bytesBelow(root)
		if err != nil {
			return 0, fmt.Errorf("look at the data folder: %w", err)
		}
		n += size
	}
	return n, nil
}

func bytesBelow(root string) (n int64, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path != root {
			return nil
		}
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if leftOut(entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err == nil {
			n += info.Size()
		}
		return nil
	})
	return n, err
}

// leftOut are folders of no use to a backup: what repair has moved aside, what
// queries spill to, and the copy that another backup has used.
func leftOut(name string) bool {
	return strings.HasPrefix(name, intakeDir+".damaged-") || name == eventsFile+".tmp" || name == checkpointDir
}
