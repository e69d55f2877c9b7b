package backup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ExtractParams say what to take out of a backup.
type ExtractParams struct {
	// From is the folder of the backup, Manifest what Open returned.
	From     string
	Manifest *Manifest
	// Prefix chooses the files, such as "data/"; the rest of a file's path is
	// its path below To.
	Prefix, To string
	Progress   Progress
}

// Extract copies files out of a backup and returns once they are on disk. It
// returns ErrDamaged as soon as a file is not the one of the manifest; what was
// copied by then is left for the caller to remove.
func Extract(ctx context.Context, p ExtractParams) error {
	c := copier{progress: p.Progress}
	for _, want := range p.Manifest.Files {
		rest, ok := strings.CutPrefix(want.Path, p.Prefix)
		if !ok {
			continue
		}
		got, err := c.copy(ctx, filepath.Join(p.From, filepath.FromSlash(want.Path)), filepath.Join(p.To, filepath.FromSlash(rest)), want.Path)
		if err != nil {
			return err
		}
		if err := want.compare(got); err != nil {
			return err
		}
	}
	return syncFolders(p.To)
}

// Check compares a file of a backup with its manifest. It returns ErrDamaged if
// it differs.
func Check(ctx context.Context, from string, m *Manifest, path string) error {
	for _, want := range m.Files {
		if want.Path == path {
			return new(copier).check(ctx, from, want)
		}
	}
	return fmt.Errorf("%w: %s is not in the manifest", ErrDamaged, path)
}

func (c *copier) check(ctx context.Context, from string, want File) error {
	file, err := os.Open(filepath.Join(from, filepath.FromSlash(want.Path)))
	if err != nil {
		return fmt.Errorf("check %s: %w", want.Path, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	got, err := c.stream(ctx, file, nil, want.Path)
	if err != nil {
		return fmt.Errorf("check %s: %w", want.Path, err)
	}
	return want.compare(got)
}

func (f File) compare(got File) error {
	if got.Bytes != f.Bytes || got.SHA256 != f.SHA256 {
		return fmt.Errorf("%w: %s does not have the checksum of the manifest", ErrDamaged, f.Path)
	}
	return nil
}
