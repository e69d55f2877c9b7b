// Package backup owns the folder that a backup is: copies of files, and a
// manifest with the size and the checksum of each, written last. It knows no
// engine and never decides when a file may be copied.
//
// Invariants:
//   - a folder without a manifest is no backup, however whole it looks;
//   - what a manifest lists is on disk before the manifest is;
//   - nothing is taken out of a backup whose bytes differ from its manifest.
package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
)

// FormatVersion is the version of the manifest that this program writes, and
// the highest that it reads.
const FormatVersion = 1

// ManifestFile is the name of the manifest in a backup.
const ManifestFile = "MANIFEST.json"

// ErrIncomplete is returned for a folder that holds no whole backup: it was cut
// short, or is something else.
var ErrIncomplete = errors.New("there is no whole backup")

// ErrDamaged is returned for a backup whose files are not those of its
// manifest.
var ErrDamaged = errors.New("the backup is damaged or put together from several")

// ErrNewer is returned for a backup that a newer version of this program made.
var ErrNewer = errors.New("the backup was made by a newer version")

// ErrOccupied is returned for a target that is not an empty folder.
var ErrOccupied = errors.New("the target is not empty")

// Manifest says what a backup holds.
type Manifest struct {
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	// Program is the version of the program that made it.
	Program string `json:"program"`
	// Store is the identity of the data folder, in hexadecimal.
	Store string `json:"store"`
	// Database is where the accounts are: "sqlite", in the folder, or
	// "postgresql", in a dump.
	Database string `json:"database"`
	// Replays is where the chunks of session replays are: "folder", and then
	// they are in the backup, or "bucket" or "elsewhere" (in a bucket that was not
	// named, or in the folder of another server), and then they are not.
	Replays string `json:"replays"`
	// LostReplays counts chunks that the database knows and that were not in the
	// folder.
	LostReplays int64 `json:"lost_replays,omitempty"`
	// SecretKey is "settings" if the key that secrets are encrypted by is not in
	// the backup, since settings that were not copied give it; else empty.
	SecretKey string `json:"secret_key,omitempty"`
	// Acknowledged is the last position that had been acknowledged.
	Acknowledged uint64 `json:"acknowledged"`
	// Secrets is always true: keys of model providers can be read with what is
	// in here.
	Secrets bool `json:"holds_secrets"`
	// Files are in order of path.
	Files []File `json:"files"`
}

// File is one file of a backup.
type File struct {
	// Path is relative to the backup, with slashes.
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Bytes returns the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

// Has says whether a file is in the backup.
func (m *Manifest) Has(path string) bool {
	return slices.ContainsFunc(m.Files, func(f File) bool { return f.Path == path })
}

// sealed is the manifest as it is written: with a checksum of its own.
type sealed struct {
	Backup json.RawMessage `json:"backup"`
	SHA256 string          `json:"sha256"`
}

// write puts the manifest into a backup, whose files are on disk.
func (m *Manifest) write(dir string) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	sum := sha256.Sum256(body)
	content, err := json.Marshal(sealed{Backup: body, SHA256: hex.EncodeToString(sum[:])})
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return atomicfile.Write(filepath.Join(dir, ManifestFile), append(content, '\n'))
}

// Open reads the manifest of a backup and looks at which files are there; what
// they hold is compared when they are taken out. It returns ErrIncomplete,
// ErrDamaged or ErrNewer.
func Open(dir string) (*Manifest, error) {
	content, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: it has no %s, so it was cut short or is something else", ErrIncomplete, dir, ManifestFile)
	}
	if err != nil {
		return nil, fmt.Errorf("open the backup: %w", err)
	}
	m, err := parse(content)
	if err != nil {
		return nil, err
	}
	if err := m.compareNames(dir); err != nil {
		return nil, err
	}
	return m, nil
}

// Around returns the backup that a path is somewhere within, and whether there
// is one.
func Around(path string) (dir string, found bool) {
	for dir = filepath.Dir(path); ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, ManifestFile))
		if err == nil {
			_, err = parse(content)
		}
		if err == nil || errors.Is(err, ErrNewer) {
			return dir, true
		}
		if dir == filepath.Dir(dir) {
			return "", false
		}
	}
}

func parse(content []byte) (*Manifest, error) {
	var s sealed
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("%w: %s is malformed: %w", ErrDamaged, ManifestFile, err)
	}
	sum := sha256.Sum256(s.Backup)
	if hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, fmt.Errorf("%w: %s does not have its own checksum", ErrDamaged, ManifestFile)
	}
	m := &Manifest{}
	if err := json.Unmarshal(s.Backup, m); err != nil {
		return nil, fmt.Errorf("%w: %s is malformed: %w", ErrDamaged, ManifestFile, err)
	}
	if m.Version > FormatVersion {
		return nil, fmt.Errorf("%w (format %d, this one knows %d)", ErrNewer, m.Version, FormatVersion)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.Path) || strings.Contains(f.Path, `\`) {
			return nil, fmt.Errorf("%w: the manifest lists %q", ErrDamaged, f.Path)
		}
	}
	return m, nil
}

// compareNames refuses a backup with files that its manifest does not list, or
// without some that it does.
func (m *Manifest) compareNames(dir string) error {
	if err := m.compareFiles(dir); err != nil {
		return err
	}
	listed := map[string]bool{ManifestFile: true}
	for _, f := range m.Files {
		listed[f.Path] = true
	}
	files, err := list(dir)
	if err != nil {
		return err
	}
	for _, path := range files {
		if !listed[path] {
			return fmt.Errorf("%w: %s is not in the manifest", ErrDamaged, path)
		}
	}
	return nil
}

// compareFiles refuses a backup without some of the files that its manifest
// lists, or with others in their place.
func (m *Manifest) compareFiles(dir string) error {
	for _, f := range m.Files {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.Path)))
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: %s is missing", ErrDamaged, f.Path)
		case err != nil:
			return fmt.Errorf("open the backup: %w", err)
		case !info.Mode().IsRegular() || info.Size() != f.Bytes:
			return fmt.Errorf("%w: %s has %d bytes instead of %d", ErrDamaged, f.Path, info.Size(), f.Bytes)
		}
	}
	return nil
}
