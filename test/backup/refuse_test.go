package backup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

// wantRefusal demands a refusal in words that hold want, and that nothing
// starts on what was refused.
func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.Is(err, app.ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a refusal that says %q", err, want)
	}
}

// Backups put together from parts of two are refused, whichever parts.
func TestMixedBackupsAreRefused(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	r.TrackNew(3)
	older, _ := backup(t, site)
	r.TrackNew(3)
	status, answer := r.Post("/api/v1/projects", site.Setup.AccessToken, `{"name":"another"}`)
	if status != 201 {
		t.Fatalf("%d %v", status, answer)
	}
	r.MustStop()
	newer, _ := backup(t, site)
	parts := []string{"events", "intake", "actionpulse.db", "ACKNOWLEDGED"}
	for mask := 1; mask < 1<<len(parts)-1; mask++ {
		mixed := apptest.At(t, filepath.Join(t.TempDir(), "mixed"))
		if err := os.CopyFS(mixed.Dir, os.DirFS(newer)); err != nil {
			t.Fatal(err)
		}
		var from []string
		for i, part := range parts {
			if mask&(1<<i) != 0 {
				mixed.Replace(filepath.Join("data", part), older)
				from = append(from, part)
			}
		}
		data := filepath.Join(t.TempDir(), "data")
		err := restoreInto(t, mixed.Dir, data, "")
		if !errors.Is(err, app.ErrRefused) || !strings.Contains(err.Error(), "put together from several") {
			t.Errorf("with %v of the older: %v", from, err)
		}
		if _, err := apptest.At(t, data).Serve(); !errors.Is(err, app.ErrRefused) {
			t.Errorf("with %v of the older a server starts: %v", from, err)
		}
	}
	again := restoreNew(t, site, older)
	if report := again.Verify(); report.Rows+int64(report.Backlog) != 3 {
		t.Errorf("%+v", report)
	}
}

// A flipped bit, a missing file, one too many and a lost manifest are noticed.
func TestDamagedBackupsAreRefused(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	dir, report := backup(t, site)
	for _, f := range report.Manifest.Files {
		if f.Bytes == 0 {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		content := flip(t, path)
		data := filepath.Join(t.TempDir(), "data")
		wantRefusal(t, restoreInto(t, dir, data, ""), f.Path)
		if _, err := apptest.At(t, data).Serve(); !errors.Is(err, app.ErrRefused) {
			t.Errorf("with a damaged %s a server starts: %v", f.Path, err)
		}
		write(t, path, content)
	}
	manifest := filepath.Join(dir, "MANIFEST.json")
	content := flip(t, manifest)
	wantRefusal(t, restoreInto(t, dir, t.TempDir(), ""), "MANIFEST.json")
	remove(t, manifest)
	wantRefusal(t, restoreInto(t, dir, t.TempDir(), ""), "cut short")
	write(t, manifest, content)
	write(t, filepath.Join(dir, "data", "extra"), nil)
	wantRefusal(t, restoreInto(t, dir, t.TempDir(), ""), "data/extra is not in the manifest")
	remove(t, filepath.Join(dir, "data", "extra"))
	remove(t, filepath.Join(dir, "data", "secret.key"))
	wantRefusal(t, restoreInto(t, dir, t.TempDir(), ""), "data/secret.key is missing")
}

// flip changes a bit in the middle of a file and returns what it was.
func flip(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte(nil), content...)
	changed[len(changed)/2] ^= 1
	write(t, path, changed)
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// Nothing is written over anything, and a backup is its owner's only.
func TestTargetsMustBeFree(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	dir, report := backup(t, site)
	if !report.Manifest.Secrets || !report.Manifest.Has("data/secret.key") {
		t.Errorf("it does not say that it holds secrets: %+v", report.Manifest)
	}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		want := os.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	into := func(out string) error {
		_, err := app.Backup(t.Context(), app.BackupParams{Config: site.Config().Folder, Out: out, Log: apptest.Discard})
		return err
	}
	wantRefusal(t, into(dir), "not empty")
	wantRefusal(t, into(filepath.Join(site.Dir, "backup")), "beside the data folder")
	wantRefusal(t, into(filepath.Dir(site.Dir)), "beside the data folder")
	wantRefusal(t, restoreInto(t, dir, site.Dir, ""), "not empty")
	wantRefusal(t, restoreInto(t, dir, t.TempDir(), "postgres://h/d"), "without --database")
}

// refuseBackup backs a folder up and demands a refusal that leaves nothing behind.
func refuseBackup(t *testing.T, c config.Folder, want string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	_, err := app.Backup(t.Context(), app.BackupParams{Config: c, Out: out, Log: apptest.Discard})
	wantRefusal(t, err, want)
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v %v is left", want, entries, err)
	}
}

// databaseMustBeNamed: a folder is copied with the database that belongs to it,
// or not at all, whether a server runs on it, as on this one, or not.
func databaseMustBeNamed(t *testing.T, site *apptest.Site) {
	t.Helper()
	named := site.Config().Folder
	unnamed, empty := named, named
	unnamed.Database, empty.Database = "", config.DatabaseURL(pgtest.New(t))
	refuseBackup(t, unnamed, "say the same --database as the server")
	refuseBackup(t, empty, "it has no tables; say the same --database as the server")
	other := apptest.New(t).Config().Folder
	other.Database = named.Database
	refuseBackup(t, other, "the accounts belong to another data folder: say the same --database as the server")
}

// databaseMustBeEmpty: on PostgreSQL a dump goes into an empty database only,
// above all not into the one that is in use, and the settings of what was
// restored name the new one.
func databaseMustBeEmpty(t *testing.T, dir string, restored *apptest.Site, used string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(restored.Dir, "config.json"))
	if err != nil || strings.Contains(string(content), strings.Split(used, "?")[0]) || !strings.Contains(string(content), "3s") {
		t.Errorf("the settings still name the old database: %s %v", content, err)
	}
	data := filepath.Join(t.TempDir(), "data")
	wantRefusal(t, restoreInto(t, dir, data, ""), "--database")
	for range 2 { // the refusal leaves nothing behind that would take the full one for its own
		wantRefusal(t, restoreInto(t, dir, data, config.DatabaseURL(used)), "empty database")
	}
	foreign := pgtest.New(t)
	db, err := pgx.Connect(t.Context(), foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `CREATE TABLE diary (entry text)`); err != nil || db.Close(t.Context()) != nil {
		t.Fatal(err)
	}
	wantRefusal(t, restoreInto(t, dir, data, config.DatabaseURL(foreign)), "public.diary")
	_, err = app.Restore(t.Context(), app.RestoreParams{
		From: dir, Data: data, Database: config.DatabaseURL(pgtest.New(t)), LoadTool: "/nowhere/pg_restore", Log: apptest.Discard,
	})
	if err == nil || !strings.Contains(err.Error(), "client programs") {
		t.Errorf("without pg_restore: %v", err)
	}
	apptest.At(t, data).MustRefuse("restored to its end")
}

// A restore that is refused leaves its target as it is, and a folder without
// its intake store is not taken for a whole one.
func TestARefusalChangesNothing(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	dir, _ := backup(t, site)
	full := t.TempDir()
	if err := os.Chmod(full, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(full, "diary"), []byte("mine"))
	wantRefusal(t, restoreInto(t, dir, full, ""), "not empty")
	entries, err := os.ReadDir(full)
	info, statErr := os.Stat(full)
	if err := errors.Join(err, statErr); err != nil || len(entries) != 1 || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v %v", entries, info, err)
	}
	// While another restore holds the target nothing in it is touched.
	data := filepath.Join(t.TempDir(), "data")
	_, err = app.Restore(t.Context(), app.RestoreParams{From: dir, Data: data, Log: apptest.Discard, Progress: func(string, int64, int64) {
		if err := restoreInto(t, dir, data, ""); !errors.Is(err, app.ErrRefused) {
			t.Errorf("beside another: %v", err)
		}
	}})
	if err != nil {
		t.Error(err)
	}
}

// A folder that nobody serves is copied as it is, but not without what makes it
// one.
func TestAFolderWithoutAPartIsNotCopied(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	without := func(parts string) func(string) error {
		return func(dir string) error {
			found, err := filepath.Glob(filepath.Join(dir, parts))
			for _, path := range found {
				err = errors.Join(err, os.RemoveAll(path))
			}
			if len(found) == 0 {
				t.Errorf("there is no %s", parts)
			}
			return err
		}
	}
	with := func(name, content string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600) }
	}
	for _, one := range []struct {
		change func(dir string) error
		want   string
	}{
		{without("events"), "events cannot be copied"},
		{without("events/events.duckdb"), "events cannot be copied"},
		{without("intake"), "intake cannot be copied"},
		{without("intake/M*"), "intake cannot be copied"},
		{without("ACKNOWLEDGED"), "ACKNOWLEDGED is missing"},
		{without("actionpulse.db"), "restore actionpulse.db from a backup"},
		{with("actionpulse.db", ""), "it has no tables"},
		{without("FORMAT"), "is not a data folder"},
		{with("FORMAT", "{"), "FORMAT is malformed"},
		{with("FORMAT", `{"version":1,"store":"0"}`), "the store identity in FORMAT is malformed"},
		{with("FORMAT", `{"version":1,"store":"00000000000000000000000000000000"}`), "the accounts belong to another data folder"},
		{with("RESTORING", "{}"), "not restored to its end"},
	} {
		folder := apptest.At(t, site.Copy())
		if err := one.change(folder.Dir); err != nil {
			t.Fatal(err)
		}
		refuseBackup(t, folder.Config().Folder, one.want)
	}
}

// A restore that is cut short leaves a folder on which nothing starts, and which
// can be restored.
func TestARestoreThatIsCutShort(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	ids := r.TrackNew(4)
	r.MustStop()
	dir, report := backup(t, site)
	data := filepath.Join(t.TempDir(), "data")
	for n := range report.Manifest.Files {
		ctx, cancel := context.WithCancel(t.Context())
		seen := map[string]bool{}
		_, err := app.Restore(ctx, app.RestoreParams{From: dir, Data: data, Log: apptest.Discard, Progress: func(path string, _, _ int64) {
			if seen[path] = true; len(seen) > n {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			t.Fatalf("after %d files: it was not cut short", n)
		}
		apptest.At(t, data).MustRefuse("restored to its end")
	}
	if err := restoreInto(t, dir, data, ""); err != nil {
		t.Fatal(err)
	}
	// One that was killed before it had noted anything.
	killed := t.TempDir()
	write(t, filepath.Join(killed, "LOCK"), nil)
	write(t, filepath.Join(killed, "RESTORING.new"), []byte("{"))
	if err := restoreInto(t, dir, killed, ""); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(killed, "RESTORING.new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	restored := apptest.At(t, data)
	restored.Setup = site.Setup
	if a := restored.MustServe().Track(ids...); a["duplicates"] != 4.0 {
		t.Errorf("got %v", a)
	}
}

// Two backups into one folder: the one that comes second is refused, whether a
// server runs or not, and takes nothing away from the first.
func TestTwoBackupsIntoOneFolder(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	for name, settle := range map[string]func(){"stopped": func() {}, "running": func() { site.MustServe().TrackNew(1) }} {
		settle()
		dir := filepath.Join(t.TempDir(), "backup")
		second := func(string, int64, int64) {
			_, err := app.Backup(t.Context(), app.BackupParams{Config: site.Config().Folder, Out: dir, Log: apptest.Discard})
			if err == nil {
				t.Errorf("%s: a second backup was made", name)
			}
		}
		_, err := app.Backup(t.Context(), app.BackupParams{Config: site.Config().Folder, Out: dir, Log: apptest.Discard, Progress: second})
		if err == nil {
			err = restoreInto(t, dir, filepath.Join(t.TempDir(), "data"), "")
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A backup that is cut short leaves nothing, and the server goes on.
func TestABackupThatIsCutShort(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	dir := filepath.Join(t.TempDir(), "backup")
	cut := func(at string, how func()) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if how == nil {
			how = cancel
		}
		_, err := app.Backup(ctx, app.BackupParams{Config: site.Config().Folder, Out: dir, Log: apptest.Discard, Progress: func(path string, _, _ int64) {
			if strings.Contains(path, at) {
				how()
			}
		}})
		_ = os.RemoveAll(filepath.Join(dir, "MANIFEST.json", "x")) // the test's own
		_ = os.Remove(filepath.Join(dir, "MANIFEST.json"))
		if entries, readErr := os.ReadDir(dir); err == nil || readErr != nil || len(entries) > 0 {
			t.Errorf("cut at %s: %v; %v %v is left", at, err, entries, readErr)
		}
		return err
	}
	// At the end everything is there, but the manifest cannot be written.
	for _, at := range []string{"events.duckdb", "intake/", "actionpulse.db", "data/FORMAT"} {
		how := map[string]func(){"data/FORMAT": func() { _ = os.MkdirAll(filepath.Join(dir, "MANIFEST.json", "x"), 0o700) }}[at]
		_ = cut(at, how)
		r.TrackNew(1)
		for _, err := os.Stat(filepath.Join(site.Dir, "intake.checkpoint")); !errors.Is(err, os.ErrNotExist); {
			if t.Context().Err() != nil {
				t.Fatalf("cut at %s: the copy is left behind: %v", at, err)
			}
			_, err = os.Stat(filepath.Join(site.Dir, "intake.checkpoint"))
		}
	}
	// A server that is told to stop does not wait for a backup.
	stopped := make(chan error, 1)
	_ = cut("events.duckdb", func() {
		if len(stopped) == 0 {
			stopped <- r.Stop()
		}
	})
	if len(stopped) == 0 {
		t.Fatal("the backup was not begun")
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if report := site.Verify(); !report.OK || report.Backlog != 0 || report.Rows != 4 {
		t.Errorf("%+v", report)
	}
}
