package storagetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// Contents is what is in a store when a test gets it.
type Contents int

const (
	// Nothing is a place without tables, for [sqldb.Create].
	Nothing Contents = iota
	// Tables are what [sqldb.Create] leaves, with [Identity].
	Tables
	// Accounts are what account.Setup makes besides, see [NewLivedIn].
	Accounts
	// housed are those of the suite: of setupParams, made when its clock begins.
	housed
)

// template is a store that others are copied from: running every migration and
// hashing a password takes longer than most tests do.
type template struct {
	// setup names the accounts.
	setup account.SetupResult
	// file is the content of a closed SQLite file.
	file []byte
	// database is the same of PostgreSQL.
	database *pgtest.Template
}

var (
	onSQLite = map[Contents]func() (template, error){
		Tables: sqliteTemplate(Tables), Accounts: sqliteTemplate(Accounts), housed: sqliteTemplate(housed),
	}
	onPostgreSQL = map[Contents]*template{
		Tables: postgresTemplate(Tables), Accounts: postgresTemplate(Accounts), housed: postgresTemplate(housed),
	}
)

func sqliteTemplate(c Contents) func() (template, error) {
	return sync.OnceValues(func() (p template, err error) {
		dir, err := os.MkdirTemp("", "actionpulse-template-")
		if err != nil {
			return p, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		path := filepath.Join(dir, "actionpulse.db")
		if p.setup, err = fill(sqldb.Options{Path: path}, c); err != nil {
			return p, err
		}
		p.file, err = os.ReadFile(path)
		return p, err
	})
}

func postgresTemplate(c Contents) *template {
	var p template
	p.database = pgtest.NewTemplate(func(url string) (err error) {
		p.setup, err = fill(sqldb.Options{URL: url}, c)
		return err
	})
	return &p
}

// fill makes a store in an empty place and closes it. It outlives the test that
// happens to be the first.
func fill(o sqldb.Options, c Contents) (setup account.SetupResult, err error) {
	ctx := context.Background()
	db, err := sqldb.Create(ctx, o, Identity)
	if err != nil {
		return setup, err
	}
	clock, params := time.Now, account.SetupParams{Organization: "o", Project: "p", Email: "a@b"}
	if c == housed {
		clock, params = func() time.Time { return begun }, setupParams
	}
	if c != Tables {
		accounts := account.NewService(account.Params{Store: sqlstore.New(db), Clock: clock, Random: rand.Reader})
		if setup, err = accounts.Setup(ctx, params); err == nil {
			err = Cheapen(ctx, db, setup)
		}
	}
	return setup, errors.Join(err, db.Close())
}

// Cheapen has the owner's password kept as a hash that takes no time. One of
// the cost that servers give takes a third of a second with the race detector,
// at each login. Hashes carry their cost, so whoever verifies need not know;
// those that are made later, and what is done for unknown emails, cost what they
// always do.
func Cheapen(ctx context.Context, db *sqldb.DB, setup account.SetupResult) error {
	const memory, passes, lanes, length = 8, 1, 1, 32 // KiB and bytes
	salt := []byte("salt of the test")
	hash := argon2.IDKey([]byte(setup.Password), salt, passes, memory, lanes, length)
	phc := fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, passes, lanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
	return db.WriteTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE users SET password_hash = $1 WHERE id = $2", phc, setup.UserID)
		return err
	})
}

// SQLite is the OpenFunc of SQLite.
func SQLite(t testing.TB, contents ...Contents) sqldb.Options {
	t.Helper()
	o := sqldb.Options{Path: filepath.Join(t.TempDir(), "actionpulse.db")}
	if from, ok := onSQLite[only(contents)]; ok {
		p, err := from()
		if err == nil {
			err = os.WriteFile(o.Path, p.file, 0o600)
		}
		if err != nil {
			t.Fatalf("copy a store: %v", err)
		}
	}
	return o
}

// PostgreSQL is the OpenFunc of PostgreSQL. The package under test must call
// pgtest.Main.
func PostgreSQL(t testing.TB, contents ...Contents) sqldb.Options {
	t.Helper()
	if from, ok := onPostgreSQL[only(contents)]; ok {
		return sqldb.Options{URL: from.database.New(t)}
	}
	return sqldb.Options{URL: pgtest.New(t)}
}

// only returns the one of contents, Nothing when there is none.
func only(contents []Contents) Contents {
	switch len(contents) {
	case 0:
		return Nothing
	case 1:
		return contents[0]
	}
	panic(fmt.Sprintf("a store with %v", contents))
}

// New makes a store with tables and closes it when the test ends.
func New(t testing.TB, open OpenFunc) *sqldb.DB {
	t.Helper()
	return Open(t, open(t, Tables))
}

// NewLivedIn makes a store with one organization, its owner, a project and its
// credentials, which are the same ones in all such stores of an engine, and
// closes it when the test ends.
func NewLivedIn(t testing.TB, open OpenFunc) (*sqldb.DB, account.SetupResult) {
	t.Helper()
	o := open(t, Accounts)
	return Open(t, o), SetupOf(t, o)
}

// SetupOf returns what account.Setup has made in a store with [Accounts].
func SetupOf(t testing.TB, o sqldb.Options) account.SetupResult {
	t.Helper()
	return setupOf(t, o, Accounts)
}

func setupOf(t testing.TB, o sqldb.Options, c Contents) account.SetupResult {
	t.Helper()
	if o.URL != "" {
		return onPostgreSQL[c].setup
	}
	p, err := onSQLite[c]()
	if err != nil {
		t.Fatal(err)
	}
	return p.setup
}

// Open opens a store that is there and closes it when the test ends.
func Open(t testing.TB, o sqldb.Options) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), o)
	return closed(t, db, err)
}

// create makes a store in an empty place and closes it when the test ends.
func create(t testing.TB, o sqldb.Options) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Create(t.Context(), o, Identity)
	return closed(t, db, err)
}

func closed(t testing.TB, db *sqldb.DB, err error) *sqldb.DB {
	t.Helper()
	if err != nil {
		t.Fatalf("open a store: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return db
}
