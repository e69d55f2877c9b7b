package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Migrations holds the schema, one folder for each engine, as files that are
// applied in order of name and never changed after a release. It is for those
// who bring schemas up to date with a tool of their own; others call
// [Migrate].
//
//go:embed migrations/sqlite/*.sql migrations/postgres/*.sql
var Migrations embed.FS

// ErrNewer is returned by Migrate when a newer version of this package has
// changed the schema.
var ErrNewer = errors.New("a newer version has changed the schema of the idempotency keys")

const (
	createVersions = `CREATE TABLE IF NOT EXISTS idempotency_migrations (number bigint PRIMARY KEY, name text NOT NULL)`
	// migrationLock is the key of PostgreSQL's advisory lock; any number will
	// do that nobody else uses.
	migrationLock = `SELECT pg_advisory_xact_lock(5130774281639042287)`
)

// Migrate makes the table for keys in the caller's transaction, or brings it
// up to date. It may be called at every start, by several processes at once.
func Migrate(ctx context.Context, tx *sql.Tx, d Dialect) error {
	folder := "migrations/sqlite"
	if d == PostgreSQL {
		folder = "migrations/postgres"
		if _, err := tx.ExecContext(ctx, migrationLock); err != nil {
			return fmt.Errorf("lock the migrations of the idempotency keys: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, createVersions); err != nil {
		return fmt.Errorf("create the table of migrations: %w", err)
	}
	var applied int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM idempotency_migrations`).Scan(&applied); err != nil {
		return fmt.Errorf("read the applied migrations: %w", err)
	}
	files, err := fs.ReadDir(Migrations, folder)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if applied > len(files) {
		return ErrNewer
	}
	for i := applied; i < len(files); i++ {
		if err := apply(ctx, tx, folder, files[i].Name(), i+1); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, tx *sql.Tx, folder, name string, number int) error {
	text, err := fs.ReadFile(Migrations, folder+"/"+name)
	if err != nil {
		return fmt.Errorf("read a migration: %w", err)
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return fmt.Errorf("apply %s of the idempotency keys: %w", name, err)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO idempotency_migrations (number, name) VALUES ($1, $2)`,
		number, strings.TrimSuffix(name, ".sql"))
	if err != nil {
		return fmt.Errorf("note %s of the idempotency keys: %w", name, err)
	}
	return nil
}
