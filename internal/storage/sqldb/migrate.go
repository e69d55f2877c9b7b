package sqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// migrationsTable holds one row for each applied migration. Its name carries
// the program's, since a PostgreSQL schema may be shared.
const migrationsTable = "actionpulse_migrations"

const createMigrationsTable = `CREATE TABLE IF NOT EXISTS ` + migrationsTable + ` (
  number     bigint PRIMARY KEY,
  name       text   NOT NULL,
  checksum   text   NOT NULL,
  applied_at bigint NOT NULL
)`

// migration is one file: a step from one schema to the next.
type migration struct {
	number   int64
	name     string
	checksum string
	sql      string
}

// loadMigrations reads a folder of files NNNN_name.sql. Their numbers must run
// from 1 without gaps.
func loadMigrations(files fs.FS, folder string) ([]migration, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	all := make([]migration, 0, len(entries))
	for i, e := range entries {
		text, err := fs.ReadFile(files, path.Join(folder, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the migrations: %w", err)
		}
		number, _, _ := strings.Cut(e.Name(), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n != int64(i+1) {
			return nil, fmt.Errorf("migration %s/%s should have the number %d", folder, e.Name(), i+1)
		}
		sum := sha256.Sum256(text)
		all = append(all, migration{
			number: n, name: strings.TrimSuffix(e.Name(), ".sql"), checksum: hex.EncodeToString(sum[:]), sql: string(text),
		})
	}
	return all, nil
}

// migrated says whether the store has ever been migrated.
func (d *DB) migrated(ctx context.Context) (bool, error) {
	var n int
	if err := d.writer.QueryRowContext(ctx, d.dialect.hasTable(), migrationsTable).Scan(&n); err != nil {
		return false, fmt.Errorf("look for tables in %s: %w", d.dialect, err)
	}
	return n > 0, nil
}

// migrate applies what is missing, each migration in a transaction of its own
// that begins by looking at what is there, so that several processes may
// migrate at once.
func (d *DB) migrate(ctx context.Context, known []migration) error {
	for done := false; !done; {
		err := inTx(ctx, d.writer, func(tx *sql.Tx) (err error) {
			done, err = d.migrateOne(ctx, tx, known)
			return err
		})
		if err != nil {
			return fmt.Errorf("migrate %s: %w", d.dialect, err)
		}
	}
	return nil
}

// migrateOne applies the next migration and says whether it was the last.
func (d *DB) migrateOne(ctx context.Context, tx *sql.Tx, known []migration) (done bool, err error) {
	if lock := d.dialect.lockMigrations(); lock != "" {
		if _, err := tx.ExecContext(ctx, lock); err != nil {
			return false, fmt.Errorf("take the migration lock: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, createMigrationsTable); err != nil {
		return false, fmt.Errorf("create the table of migrations: %w", err)
	}
	applied, err := countApplied(ctx, tx, known)
	if err != nil || applied == len(known) {
		return true, err
	}
	next := known[applied]
	if _, err := tx.ExecContext(ctx, next.sql); err != nil {
		return false, fmt.Errorf("apply %s: %w", next.name, err)
	}
	_, err = tx.ExecContext(ctx,
		`INSERT INTO `+migrationsTable+` (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)`,
		next.number, next.name, next.checksum, d.clock().UnixMicro())
	if err != nil {
		return false, fmt.Errorf("note %s as applied: %w", next.name, err)
	}
	return applied+1 == len(known), nil
}

// countApplied verifies that the applied migrations are the first of those
// known and returns how many there are.
func countApplied(ctx context.Context, tx *sql.Tx, known []migration) (n int, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT number, name, checksum FROM `+migrationsTable+` ORDER BY number`)
	if err != nil {
		return 0, fmt.Errorf("read the applied migrations: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below reports what matters
	for rows.Next() {
		var m migration
		if err := rows.Scan(&m.number, &m.name, &m.checksum); err != nil {
			return 0, fmt.Errorf("read the applied migrations: %w", err)
		}
		switch {
		case m.number > int64(len(known)):
			return 0, fmt.Errorf("%w: it has migration %s, this program knows %d", ErrNewer, m.name, len(known))
		case n >= len(known) || m.number != known[n].number || m.checksum != known[n].checksum:
			return 0, fmt.Errorf("%w: %s differs", ErrChanged, m.name)
		}
		n++
	}
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("read the applied migrations: %w", err)
	}
	return n, nil
}
