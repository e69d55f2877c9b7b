package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/gofrs/flock"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/backup"
	"github.com/actionpulse/actionpulse/internal/config"
)

// restoring is what the file RESTORING says while a folder is being restored.
// No command uses a folder that has it.
type restoring struct {
	// Backup is the checksum of the backup's list of files.
	Backup string `json:"backup"`
	// Database is the checksum of the address of a database that was empty and
	// is being filled: all of it, or none if that was cut short.
	Database string `json:"database,omitempty"`
}

// lockTarget makes the folder of a restore and locks it, if it may be used: one
// that is refused is left as it is.
func (f folder) lockTarget() (*flock.Flock, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	if _, err := f.earlierRestore(); err != nil {
		return nil, err
	}
	return f.lock()
}

// beginRestore takes the folder, which is locked, for a restore: an empty one,
// or one that an earlier restore has left. What it holds may have changed before
// it was locked.
func (f folder) beginRestore(m *backup.Manifest) (restoring, error) {
	list, err := json.Marshal(m.Files)
	if err != nil {
		return restoring{}, fmt.Errorf("begin to restore: %w", err)
	}
	state := restoring{Backup: checksum(string(list))}
	before, err := f.earlierRestore()
	if err != nil {
		return state, err
	}
	if before.Backup == state.Backup {
		state.Database = before.Database
	}
	if err := os.Chmod(string(f), 0o700); err != nil { //nolint:gosec // a folder
		return state, fmt.Errorf("make the data folder: %w", err)
	}
	if err := f.noteRestore(state); err != nil {
		return state, err
	}
	return state, f.clear()
}

// earlierRestore returns what an earlier restore has noted in the folder, or
// nothing for an empty one; others are refused.
func (f folder) earlierRestore() (state restoring, err error) {
	content, err := os.ReadFile(f.path(restoreFile))
	if err == nil {
		if err := json.Unmarshal(content, &state); err != nil {
			return state, refuse("%s is malformed: remove %s", restoreFile, string(f))
		}
		return state, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return state, fmt.Errorf("look at the data folder: %w", err)
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return state, fmt.Errorf("look at the data folder: %w", err)
	}
	// One that was killed before it had noted anything has left no more than these.
	left := []string{lockFile, atomicfile.Temporary(restoreFile)}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return slices.Contains(left, e.Name()) })
	if len(entries) > 0 {
		return state, refuse("%s is not empty: it holds %s; restore into a new folder", string(f), entries[0].Name())
	}
	return state, nil
}

func (f folder) noteRestore(state restoring) error {
	content, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("begin to restore: %w", err)
	}
	return atomicfile.Write(f.path(restoreFile), content)
}

// clear removes what an earlier restore has left.
func (f folder) clear() error { return backup.Clear(string(f), restoreFile, lockFile) }

func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// pointTo has the folder's own settings name the database that belongs to it
// now, if they name one at all: else the next start would use the old one.
func (f folder) pointTo(database config.DatabaseURL) error {
	content, err := os.ReadFile(f.path(settings))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", settings, err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil || members["database"] == nil {
		return nil //nolint:nilerr // the settings say nothing of a database; whoever reads them complains
	}
	if members["database"], err = json.Marshal(string(database)); err != nil {
		return fmt.Errorf("write %s: %w", settings, err)
	}
	if content, err = json.MarshalIndent(members, "", "  "); err != nil {
		return fmt.Errorf("write %s: %w", settings, err)
	}
	return atomicfile.Write(f.path(settings), append(content, '\n'))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
