package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

const ownerFile = "owner.json"

// owner is what a folder says of whom its records are for. It holds neither a
// key nor anything made from one: a key that was rotated finds its records.
type owner struct {
	Format  int    `json:"format"`
	Server  string `json:"server"`
	Project string `json:"project,omitempty"`
}

// format is the version of the folder's files.
const format = 1

// own refuses a folder that belongs to another, and notes whose it is now.
func (b *Outbox) own() error {
	path := filepath.Join(b.o.Dir, ownerFile)
	mine := owner{Format: format, Server: b.o.Server, Project: b.o.Project}
	content, err := b.o.FS.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b.writeOwner(path, mine)
	case err != nil:
		return err
	}
	var was owner
	if err := json.Unmarshal(content, &was); err != nil {
		return fmt.Errorf("%s cannot be read: %w", ownerFile, err)
	}
	if was.Format > format {
		return fmt.Errorf("the folder has format %d, which is newer than this program's %d", was.Format, format)
	}
	if !was.same(mine) {
		return fmt.Errorf("%w: %s; it is given to the present one by removing %s", ErrOwner, was, ownerFile)
	}
	if mine.Project == "" {
		mine.Project = was.Project
	}
	if mine == was {
		return nil
	}
	return b.writeOwner(path, mine)
}

func (o owner) same(other owner) bool {
	if o.Project != "" && other.Project != "" {
		return o.Project == other.Project
	}
	return o.Server == other.Server
}

func (o owner) String() string {
	if o.Project != "" {
		return fmt.Sprintf("project %q at %s", o.Project, o.Server)
	}
	return o.Server
}

func (b *Outbox) writeOwner(path string, o owner) error {
	content, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return writeWhole(b.o.FS, path, content)
}

// writeWhole replaces a small file so that it is there whole or as it was.
func writeWhole(f FS, path string, content []byte) error {
	temporary := path + ".new"
	file, err := f.OpenFile(temporary)
	if err != nil {
		return err
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt(content, 0)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := f.Rename(temporary, path); err != nil {
		return err
	}
	return f.SyncDir(filepath.Dir(path))
}
