package apptest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// template is a data folder as init has left it, but that the owner's password
// costs nothing to verify. Making one takes a second with the race detector,
// writing its files again takes none.
type template struct {
	setup account.SetupResult
	files []templateFile
	// database is what belongs to it in PostgreSQL, nil with SQLite.
	database *pgtest.Template
}

type templateFile struct {
	path    string
	mode    fs.FileMode
	content []byte
}

// made is the template of this process.
var made = sync.OnceValues(func() (template, error) { return makeTemplate("") })

// madeOnPostgreSQL is that of folders whose accounts are in PostgreSQL.
var madeOnPostgreSQL = func() *template {
	var t template
	t.database = pgtest.NewTemplate(func(url string) error {
		one, err := makeTemplate(config.DatabaseURL(url))
		t.setup, t.files = one.setup, one.files
		return err
	})
	return &t
}()

func makeTemplate(database config.DatabaseURL) (t template, err error) {
	ctx := context.Background() // it outlives the test that happens to be the first
	dir, err := os.MkdirTemp("", "actionpulse-template-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data := filepath.Join(dir, "data")
	if t.setup, err = initialise(ctx, data, database); err != nil {
		return t, err
	}
	options := sqldb.Options{URL: string(database)}
	if database == "" {
		options = sqldb.Options{Path: filepath.Join(data, "actionpulse.db")}
	}
	db, err := sqldb.Open(ctx, options)
	if err != nil {
		return t, err
	}
	if err := errors.Join(storagetest.Cheapen(ctx, db, t.setup), db.Close()); err != nil {
		return t, err
	}
	t.files, err = readFiles(data)
	return t, err
}

// readFiles returns what is in a folder.
func readFiles(folder string) (files []templateFile, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
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
		file.path, err = filepath.Rel(folder, path)
		files = append(files, file)
		return err
	})
	return files, err
}

func initialise(ctx context.Context, data string, database config.DatabaseURL) (account.SetupResult, error) {
	return app.Init(ctx, app.InitParams{
		Data: data, Database: database, Log: Discard,
		Setup: account.SetupParams{Organization: "o", Project: "p", Email: "o@localhost"},
	})
}

// write makes a data folder of the template.
func (t *template) write(dir string) error {
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

// NewOnPostgreSQL makes a data folder whose accounts are in a database of its
// own; flags are given to serve. Such folders are alike within a process. The
// package under test must call pgtest.Main.
func NewOnPostgreSQL(t *testing.T, flags ...string) *Site {
	t.Helper()
	from := madeOnPostgreSQL
	url := from.database.New(t)
	s := &Site{t: t, Dir: filepath.Join(t.TempDir(), "data"), Flags: append(slices.Clone(flags), "--database", url), Setup: from.setup}
	if err := from.write(s.Dir); err != nil {
		t.Fatal(err)
	}
	return s
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
