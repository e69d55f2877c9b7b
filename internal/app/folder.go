// Package app puts the parts together: it makes, opens, checks, serves,
// verifies and repairs a data folder. It is the only package that knows all
// the others, and holds no rule of its own beyond what belongs together.
package app

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
)

// FormatVersion is the version of the folder that this program writes. In
// version 2 records may be erasures, and the event store keeps what programs of
// version 1 know nothing of.
const FormatVersion = 2

// Names within a data folder.
const (
	formatFile  = "FORMAT"
	lockFile    = "LOCK"
	markFile    = "ACKNOWLEDGED"
	controlFile = "control.json"
	sqliteFile  = "actionpulse.db"
	intakeDir   = "intake"
	eventsDir   = "events"
	eventsFile  = "events.duckdb"
	attemptFile = "attempt.json"
	settings    = "config.json"
	restoreFile = "RESTORING"
)

// folder is a path to a data folder.
type folder string

func (f folder) path(names ...string) string {
	return filepath.Join(append([]string{string(f)}, names...)...)
}

// ErrRefused is returned when a data folder cannot be used as it is. The
// message says why and what helps.
var ErrRefused = errors.New("the data folder is refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// repairHint names the command that rebuilds what can be rebuilt.
func (f folder) repairHint() string {
	return fmt.Sprintf("run: actionpulse repair --data %s", string(f))
}

// format is what the file FORMAT says. It is written last, so a folder that
// has it was made completely.
type format struct {
	Version   int       `json:"version"`
	Store     string    `json:"store"`
	CreatedAt time.Time `json:"created_at"`
	// Engines are the formats of the engines' own files when they were made.
	Engines map[string]string `json:"engines"`
}

func (f format) identity() (id [16]byte, err error) {
	b, err := hex.DecodeString(f.Store)
	if err != nil || len(b) != len(id) {
		return id, refuse("the store identity in %s is malformed", formatFile)
	}
	return [16]byte(b), nil
}

// readFormat reads FORMAT, which a folder has that is whole.
func (f folder) readFormat() (format, error) {
	if _, err := os.Lstat(f.path(restoreFile)); err == nil {
		return format{}, refuse("%s was not restored to its end: run the same actionpulse restore again", string(f))
	}
	return f.readAnyFormat()
}

// readAnyFormat reads FORMAT, also while the folder is being restored.
func (f folder) readAnyFormat() (format, error) {
	var out format
	content, err := os.ReadFile(f.path(formatFile))
	if errors.Is(err, os.ErrNotExist) {
		return out, refuse("%s is not a data folder; make one with: actionpulse init --data %s", string(f), string(f))
	}
	if err != nil {
		return out, fmt.Errorf("read %s: %w", formatFile, err)
	}
	if err := json.Unmarshal(content, &out); err != nil {
		return out, refuse("%s is malformed: %w", formatFile, err)
	}
	if out.Version > FormatVersion {
		return out, refuse("it was written by a newer version of actionpulse (format %d, this one knows %d)", out.Version, FormatVersion)
	}
	return out, nil
}

// upgradeFormat says that the folder is of this version from now on. It is done
// before anything else in the folder is changed, so that a program of an
// earlier version refuses it with the right words, however far that came.
func (f folder) upgradeFormat(made format) error {
	if made.Version == FormatVersion {
		return nil
	}
	made.Version = FormatVersion
	return f.writeFormat(made)
}

func (f folder) writeFormat(out format) error {
	content, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", formatFile, err)
	}
	return atomicfile.Write(f.path(formatFile), append(content, '\n'))
}

// errLocked is returned by lock when another process uses the folder.
var errLocked = errors.New("another process uses the data folder")

// lock takes the folder for this process, for as long as it lives. It is taken
// before any engine is opened.
func (f folder) lock() (*flock.Flock, error) {
	lock := flock.New(f.path(lockFile), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("%w: %w", ErrRefused, errLocked)
	}
	return lock, nil
}
