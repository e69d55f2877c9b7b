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

// checkTarget refuses a target within the data folder, or around it, and one
// on a disk without room. It returns about how many bytes will be copied.
func (f folder) checkTarget(out string) (need int64, err error) {
	data, err := filepath.Abs(string(f))
	if err != nil {
		return 0, fmt.Errorf("look at the target: %w", err)
	}
	target, err := filepath.Abs(out)
	if err != nil {
		return 0, fmt.Errorf("look at the target: %w", err)
	}
	if within(data, target) || within(target, data) {
		return 0, refuse("a backup must lie beside the data folder, not within it or around it")
	}
	if need, err = f.bytes(); err != nil {
		return 0, err
	}
	return need, checkSpace(target, need)
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

// bytes returns about how large a backup of the folder is, without a dump.
func (f folder) bytes() (n int64, err error) {
	err = filepath.WalkDir(string(f), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path != string(f) {
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
	if err != nil {
		return 0, fmt.Errorf("look at the data folder: %w", err)
	}
	return n, nil
}

// leftOut are folders of no use to a backup: what repair has moved aside, what
// queries spill to, and the copy that another backup has used.
func leftOut(name string) bool {
	return strings.HasPrefix(name, intakeDir+".damaged-") || name == eventsFile+".tmp" || name == checkpointDir
}
