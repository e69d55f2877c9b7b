package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	keystore "github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// busyTimeout is how long, in milliseconds, a connection waits for a lock that
// another process has: a whole migration on a slow disk, at worst.
const busyTimeout = "30000"

// sqliteReaders is the number of reading connections.
const sqliteReaders = 4

// sqliteDialect is one file, in WAL mode, every commit synced.
type sqliteDialect struct{ path string }

func (s sqliteDialect) String() string { return s.path }

func (s sqliteDialect) folder() string { return "sqlite" }

// prepare makes the empty file itself, because SQLite would make it readable
// for everyone. It must run before the first connection: closing any handle of
// the file would drop the process's locks on it.
func (s sqliteDialect) prepare() error {
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", s.path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("create %s: %w", s.path, err)
	}
	return syncFolder(filepath.Dir(s.path))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

func (s sqliteDialect) present() error {
	_, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s does not exist", ErrMissing, s.path)
	}
	if err != nil {
		return fmt.Errorf("look for the store: %w", err)
	}
	return nil
}

func (s sqliteDialect) connect() (writer, reader *sql.DB, err error) {
	path, err := filepath.Abs(s.path)
	if err != nil {
		return nil, nil, fmt.Errorf("find the path of the store: %w", err)
	}
	// The driver sets the busy timeout before everything else, so that the
	// switch to WAL waits for a reader instead of failing.
	common := url.Values{
		"mode":          {"rw"}, // never create
		"_busy_timeout": {busyTimeout},
		"_foreign_keys": {"1"},
		"_synchronous":  {"FULL"},
	}
	// What is deleted is overwritten: it may be what a person wanted erased.
	write := url.Values{"_journal_mode": {"WAL"}, "_txlock": {"immediate"}, "_pragma": {"secure_delete(1)"}}
	read := url.Values{"_query_only": {"1"}}
	if writer, err = openSQLite(path, 1, common, write); err != nil {
		return nil, nil, err
	}
	if reader, err = openSQLite(path, sqliteReaders, common, read); err != nil {
		return nil, nil, errors.Join(err, writer.Close())
	}
	return writer, reader, nil
}

func openSQLite(path string, connections int, parameters ...url.Values) (*sql.DB, error) {
	all := url.Values{}
	for _, p := range parameters {
		maps.Copy(all, p)
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: all.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// check refuses a file system on which SQLite cannot use a write-ahead log:
// it falls back to another mode without an error.
func (s sqliteDialect) check(ctx context.Context, writer *sql.DB) error {
	var mode string
	var synchronous, foreignKeys int
	for query, value := range map[string]any{
		"PRAGMA journal_mode": &mode,
		"PRAGMA synchronous":  &synchronous,
		"PRAGMA foreign_keys": &foreignKeys,
	} {
		if err := writer.QueryRowContext(ctx, query).Scan(value); err != nil {
			return fmt.Errorf("check the settings of %s: %w", s.path, err)
		}
	}
	if mode != "wal" || synchronous != 2 || foreignKeys != 1 {
		return fmt.Errorf("%s does not take the settings it needs: journal_mode %s, synchronous %d, foreign_keys %d",
			s.path, mode, synchronous, foreignKeys)
	}
	return nil
}

func (s sqliteDialect) keys() keystore.Dialect { return keystore.SQLite }

func (s sqliteDialect) hasTable() string {
	return `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = $1`
}

// lockMigrations is empty: every transaction of the writer takes the file's
// write lock when it begins.
func (s sqliteDialect) lockMigrations() string { return "" }

// repeatable is never true: with one writer that locks at the start, nothing
// fails because of a neighbour.
func (s sqliteDialect) repeatable(error) bool { return false }

// announce is empty: the data folder has one process.
func (s sqliteDialect) announce() string { return "" }

func (s sqliteDialect) now() string { return "" }

func (s sqliteDialect) listen(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
