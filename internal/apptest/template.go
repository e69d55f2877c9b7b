package apptest

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/crypto/argon2"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
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
	if err := cheapen(ctx, options, t.setup); err != nil {
		return t, err
	}
	t.files, err = readFiles(data)
	return t, err
}

// cheapen has the owner's password kept as a hash that takes no time. One of
// the cost that servers give takes a third of a second with the race detector,
// at each login. Hashes carry their cost, so servers need not know; those that
// they make themselves, and what they do for unknown emails, cost what they
// always do.
func cheapen(ctx context.Context, o sqldb.Options, setup account.SetupResult) error {
	db, err := sqldb.Open(ctx, o)
	if err != nil {
		return err
	}
	const memory, passes, lanes, length = 8, 1, 1, 32 // KiB and bytes
	salt := []byte("salt of the test")
	hash := argon2.IDKey([]byte(setup.Password), salt, passes, memory, lanes, length)
	phc := fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, passes, lanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
	err = db.WriteTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE users SET password_hash = $1 WHERE id = $2", phc, setup.UserID)
		return err
	})
	return errors.Join(err, db.Close())
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
