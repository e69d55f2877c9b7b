package sqldb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// count makes a change that can be told from others.
func count(t *testing.T, d *DB) {
	t.Helper()
	err := d.Write(t.Context(), func(q *Queries) error {
		_, err := q.NextNumber(t.Context(), CounterProject)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// copySnapshot copies a store that goes on being written to.
func copySnapshot(t *testing.T, d *DB, o Options) (path string) {
	t.Helper()
	count(t, d)
	s, err := OpenSnapshot(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if s.Identity() != d.Identity() {
		t.Errorf("the snapshot is of %x, want %x", s.Identity(), d.Identity())
	}
	if names, err := s.ListReplayBlobs(t.Context(), "", 10); err != nil || len(names) != 0 {
		t.Errorf("got %v, %v", names, err)
	}
	count(t, d)
	path = filepath.Join(t.TempDir(), "copy")
	if err := errors.Join(s.CopyTo(t.Context(), CopyParams{Path: path}), s.Close()); err != nil {
		t.Fatal(err)
	}
	count(t, d)
	return path
}

// wantCopied demands that a store is what the other was when the snapshot was
// taken.
func wantCopied(t *testing.T, o Options, of *DB) {
	t.Helper()
	d, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	n, err := d.MaxProjectNumber(t.Context())
	if err := errors.Join(err, d.Close()); err != nil || n != 1 || d.Identity() != of.Identity() {
		t.Errorf("the copy has counted to %d, want 1: %v", n, err)
	}
}

func TestSnapshotOfSQLite(t *testing.T) {
	t.Parallel()
	o := Options{Path: filepath.Join(t.TempDir(), "actionpulse.db")}
	d := newStore(t, o)
	wantCopied(t, Options{Path: copySnapshot(t, d, o)}, d)
	if _, err := OpenSnapshot(t.Context(), Options{Path: o.Path + ".other"}); !errors.Is(err, ErrMissing) {
		t.Errorf("a snapshot of nothing: %v", err)
	}
}

func TestSnapshotOfPostgreSQL(t *testing.T) {
	t.Parallel()
	o := Options{URL: pgtest.New(t)}
	d := newStore(t, o)
	dump, other := copySnapshot(t, d, o), pgtest.New(t)
	if err := LoadDump(t.Context(), LoadParams{URL: other, Path: dump}); err != nil {
		t.Fatal(err)
	}
	wantCopied(t, Options{URL: other}, d)
	if err := LoadDump(t.Context(), LoadParams{URL: other, Path: dump}); !errors.Is(err, ErrExists) {
		t.Errorf("a dump was loaded over a store: %v", err)
	}
	if _, err := OpenSnapshot(t.Context(), Options{URL: pgtest.New(t)}); !errors.Is(err, ErrMissing) {
		t.Errorf("a snapshot of nothing: %v", err)
	}
	err := LoadDump(t.Context(), LoadParams{URL: pgtest.New(t), Path: dump, Tool: "/nowhere/pg_restore"})
	if err == nil || !strings.Contains(err.Error(), "install PostgreSQL's client programs") {
		t.Errorf("without the program: %v", err)
	}
}

// What is empty is empty but for what an extension has brought.
func TestCheckEmpty(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	d, err := newPostgresDialect(url)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := d.observer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	for _, one := range []struct{ statement, want string }{
		// It makes views, where PostgreSQL comes with it.
		{`DO $$ BEGIN CREATE EXTENSION pg_stat_statements; EXCEPTION WHEN undefined_file OR feature_not_supported THEN NULL; END $$`, ""},
		{`CREATE TABLE public.mine (id int)`, "public.mine"},
		{`DROP TABLE public.mine`, ""},
		{`CREATE SCHEMA shop`, ""},
		{`CREATE SEQUENCE shop.numbers`, "shop.numbers"},
		{`DROP SEQUENCE shop.numbers`, ""},
		{`CREATE VIEW shop.names AS SELECT 1`, "shop.names"},
	} {
		if _, err := pool.ExecContext(t.Context(), one.statement); err != nil {
			t.Fatalf("%s: %v", one.statement, err)
		}
		err := CheckEmpty(t.Context(), url)
		if one.want == "" && err != nil || one.want != "" && (!errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), one.want)) {
			t.Errorf("after %s: %v", one.statement, err)
		}
	}
}

// The password is in no argument, where everybody on the machine can read it.
func TestToolsGetNoPasswordAsArgument(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u:s3cret@host/db?sslmode=require", "postgres://u@host/db?password=s3cret&sslmode=require"} {
		rest, password, err := withoutPassword(url)
		if err != nil || password != "s3cret" || rest != "postgres://u@host/db?sslmode=require" {
			t.Errorf("%s: %q %q %v", url, rest, password, err)
		}
	}
	err := runTool(context.Background(), "postgres://u:s3cret@127.0.0.1:1/db", "", dumpTool)
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}
