package apptest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
)

// template is a data folder as init has left it. Making one takes a second
// with the race detector, writing its files again takes none.
type template struct {
	setup account.SetupResult
	files []templateFile
}

type templateFile struct {
	path    string
	mode    fs.FileMode
	content []byte
}

// made is the template of this process.
var made = sync.OnceValues(func() (t template, err error) {
	dir, err := os.MkdirTemp("", "actionpulse-template-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data := filepath.Join(dir, "data")
	if t.setup, err = initialise(context.Background(), data, ""); err != nil {
		return t, err
	}
	err = filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		file := templateFile{mode: info.Mode()}
		if !entry.IsDir() {
			if file.content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		file.path, err = filepath.Rel(data, path)
		t.files = append(t.files, file)
		return err
	})
	return t, err
})

func initialise(ctx context.Context, data string, database config.DatabaseURL) (account.SetupResult, error) {
	return app.Init(ctx, app.InitParams{
		Data: data, Database: database, Log: Discard,
		Setup: account.SetupParams{Organization: "o", Project: "p", Email: "o@localhost"},
	})
}

// write makes a data folder of the template.
func (t template) write(dir string) error {
	for _, f := range t.files {
		path := filepath.Join(dir, f.path)
		var err error
		if f.mode.IsDir() {
			err = os.MkdirAll(path, f.mode.Perm())
		} else {
			err = os.WriteFile(path, f.content, f.mode.Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// NewOwn makes a data folder that has its identity and credentials to itself.
func NewOwn(t *testing.T, flags ...string) *Site {
	t.Helper()
	s := &Site{t: t, Dir: filepath.Join(t.TempDir(), "data"), Flags: flags}
	var err error
	if s.Setup, err = initialise(t.Context(), s.Dir, s.Config().Database); err != nil {
		t.Fatal(err)
	}
	return s
}
