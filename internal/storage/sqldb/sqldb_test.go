package sqldb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/migrations"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func newStore(t *testing.T, o Options) *DB {
	t.Helper()
	d, err := Create(t.Context(), o, [16]byte(bytes.Repeat([]byte{7}, 16)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func newSQLite(t *testing.T) *DB {
	t.Helper()
	return newStore(t, Options{Path: filepath.Join(t.TempDir(), "actionpulse.db")})
}

func newPostgres(t *testing.T) *DB {
	t.Helper()
	return newStore(t, Options{URL: pgtest.New(t)})
}

// mustFault checks the code of an error and what it says of the change.
func mustFault(t *testing.T, err error, applied any) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != api.CodeUnavailable || f.Details["applied"] != applied || f.RetryAfter <= 0 {
		t.Errorf("got %v, want unavailable with applied %v", err, applied)
	}
}

func TestOptionsNameOnePlace(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Path: "a", URL: "postgres://b"}, {URL: "postgres://b:secret@host:notaport/c"}} {
		_, err := Open(t.Context(), o)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}

// TestCommitRefused: a COMMIT that fails leaves SQLite's transaction open on
// the connection. The next transaction must not end up inside it.
func TestCommitRefused(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*DB{"SQLite": newSQLite(t), "PostgreSQL": newPostgres(t)} {
		refused := inTx(t.Context(), d.writer, func(tx *sql.Tx) error { return orphan(t.Context(), tx, name) })
		mustFault(t, refused, "unknown")
		var n int64
		err := d.Write(t.Context(), func(q *Queries) (err error) {
			n, err = q.NextNumber(t.Context(), CounterProject)
			return err
		})
		if err != nil || n != 1 {
			t.Errorf("%s, the next write: number %d, %v", name, n, err)
		}
		if total, err := d.Read().CountAccounts(t.Context()); err != nil || total != 0 {
			t.Errorf("%s: %d accounts, %v; want none", name, total, err)
		}
	}
}

// orphan writes a user and a row that only the COMMIT finds to be wrong.
func orphan(ctx context.Context, tx *sql.Tx, engine string) error {
	const missing = "0196a1b2-c3d4-7e5f-8a6b-00000000000f"
	statements := []string{
		`INSERT INTO users (id, email, password_hash, created_at) VALUES ('` + missing + `', 'a@b', '$argon2id$x', 0)`,
		`PRAGMA defer_foreign_keys = ON`,
		`INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES ('` + missing + `', '` + missing + `', 'owner', 0)`,
	}
	if engine == "PostgreSQL" {
		statements[1] = `ALTER TABLE memberships ALTER CONSTRAINT memberships_organization_id_fkey DEFERRABLE INITIALLY DEFERRED`
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func TestLoadMigrations(t *testing.T) {
	t.Parallel()
	file := &fstest.MapFile{Data: []byte("SELECT 1")}
	for name, c := range map[string]struct {
		files fs.FS
		want  int // -1: refused
	}{
		"in order":    {fstest.MapFS{"x/0001_a.sql": file, "x/0002_b.sql": file}, 2},
		"a gap":       {fstest.MapFS{"x/0001_a.sql": file, "x/0003_b.sql": file}, -1},
		"a double":    {fstest.MapFS{"x/0001_a.sql": file, "x/0001_b.sql": file}, -1},
		"from zero":   {fstest.MapFS{"x/0000_a.sql": file}, -1},
		"no number":   {fstest.MapFS{"x/a.sql": file}, -1},
		"no folder":   {fstest.MapFS{}, -1},
		"of SQLite":   {prefixed{"sqlite"}, len(mustLoad(t, "sqlite"))},
		"of Postgres": {prefixed{"postgres"}, len(mustLoad(t, "sqlite"))},
	} {
		got, err := loadMigrations(c.files, "x")
		if (err != nil) != (c.want < 0) || err == nil && len(got) != c.want {
			t.Errorf("%s: got %d, %v, want %d", name, len(got), err, c.want)
		}
	}
}

// prefixed shows an engine's folder of the real migrations as "x".
type prefixed struct{ folder string }

func (p prefixed) Open(name string) (fs.File, error) {
	return migrations.Files.Open(p.folder + strings.TrimPrefix(name, "x"))
}

func mustLoad(t *testing.T, folder string) []migration {
	t.Helper()
	all, err := loadMigrations(migrations.Files, folder)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMigrationsHaveOneNumbering: the files of both engines carry the same
// names, so that a number says what the schema is, whatever the engine.
func TestMigrationsHaveOneNumbering(t *testing.T) {
	t.Parallel()
	names := func(folder string) (out []string) {
		for _, m := range mustLoad(t, folder) {
			out = append(out, m.name)
		}
		return out
	}
	if diff := cmp.Diff(names("sqlite"), names("postgres")); diff != "" {
		t.Error(diff)
	}
}

// TestMigrateStepByStep: a store of an older version, with rows, is brought up
// to date when it is opened; a migration that fails leaves no trace.
func TestMigrateStepByStep(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*DB{"SQLite": newSQLite(t), "PostgreSQL": newPostgres(t)} {
		known := mustLoad(t, d.dialect.folder())
		next := int64(len(known) + 1)
		bad := migration{number: next, name: "bad", checksum: "1", sql: "CREATE TABLE extra (id integer); SELECT nothing FROM nowhere;"}
		good := migration{number: next, name: "good", checksum: "2", sql: "CREATE TABLE extra (id integer); INSERT INTO extra VALUES (1), (2);"}
		if err := d.migrate(t.Context(), append(slices.Clone(known), bad)); err == nil {
			t.Errorf("%s: the bad migration passed", name)
		}
		for range 2 { // the second time it has nothing to do
			if err := d.migrate(t.Context(), append(slices.Clone(known), good)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		var n int
		if err := d.writer.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM extra").Scan(&n); err != nil || n != 2 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
		if err := d.migrate(t.Context(), known); !errors.Is(err, ErrNewer) {
			t.Errorf("%s: the older version got %v, want ErrNewer", name, err)
		}
	}
}

// TestSchemasAgree: both engines have the same tables, columns and rules for
// NULL, since one set of queries reads them.
func TestSchemasAgree(t *testing.T) {
	t.Parallel()
	lite := columns(t, newSQLite(t), `
		SELECT m.name, c.name, CASE WHEN c."notnull" = 1 OR c.pk > 0 THEN 'NO' ELSE 'YES' END, c.type
		FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name <> $1`)
	postgres := columns(t, newPostgres(t), `
		SELECT table_name, column_name, is_nullable, data_type
		FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name <> $1`)
	if diff := cmp.Diff(lite, postgres); diff != "" {
		t.Error(diff)
	}
	if len(lite) < 30 {
		t.Errorf("only %d columns were compared: %v", len(lite), slices.Sorted(maps.Keys(lite)))
	}
}

// columns maps table.column to its type, in one spelling, and nullability.
func columns(t *testing.T, d *DB, query string) map[string]string {
	t.Helper()
	types := map[string]string{
		"INTEGER": "bigint", "TEXT": "text", "BLOB": "bytea", "REAL": "double precision",
	}
	rows, err := d.writer.QueryContext(t.Context(), query, migrationsTable)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for rows.Next() {
		var table, column, nullable, kind string
		if err := rows.Scan(&table, &column, &nullable, &kind); err != nil {
			t.Fatal(err)
		}
		if same, ok := types[kind]; ok {
			kind = same
		}
		all[table+"."+column] = kind + ", null " + nullable
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}
