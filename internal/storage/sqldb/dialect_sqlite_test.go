package sqldb

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

func TestSQLiteOpenDoesNotCreate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "actionpulse.db")
	if _, err := Open(t.Context(), Options{Path: path}); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// Not even when the file disappears between the look and the opening.
	d := sqliteDialect{path: path}
	writer, reader, err := d.connect()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.PingContext(t.Context()); err == nil {
		t.Error("the writer made the file")
	}
	if err := reader.PingContext(t.Context()); err == nil {
		t.Error("a reader made the file")
	}
	if err := errors.Join(writer.Close(), reader.Close()); err != nil {
		t.Error(err)
	}
}

func TestSQLiteFilesArePrivate(t *testing.T) {
	t.Parallel()
	// A path may hold what has a meaning in the driver's connection string.
	path := filepath.Join(t.TempDir(), "a b?c#d%41&mode=memory.db")
	newStore(t, Options{Path: path})
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(found) != 3 { // the file, its log and the log's index
		t.Errorf("found %v, %v", found, err)
	}
	for _, f := range found {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(f, path) || info.Mode() != 0o600 {
			t.Errorf("%s has mode %o", f, info.Mode())
		}
	}
}

func TestSQLiteRefusesAnotherFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range map[string]string{"empty": "", "text": strings.Repeat("not a database ", 100)} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), Options{Path: path}); err == nil {
			t.Errorf("%s: opened", name)
		}
		if got, err := os.ReadFile(path); err != nil || name == "text" && string(got) != content {
			t.Errorf("%s: changed, %v", name, err)
		}
	}
	_, err := Create(t.Context(), Options{Path: filepath.Join(folder, "missing", "x.db")}, [16]byte{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: got %v, want ErrNotExist", err)
	}
}

func TestSQLiteReadersDoNotWrite(t *testing.T) {
	t.Parallel()
	d := newSQLite(t)
	if n, err := d.Read().NextNumber(t.Context(), CounterProject); err == nil {
		t.Errorf("a reader took the number %d", n)
	}
}

// TestSQLiteVersions: modernc's SQLite is C translated against one version of
// its libc, and breaks in subtle ways with another. The build must use the one
// that the driver's own go.mod names.
func TestSQLiteVersions(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-json", "modernc.org/sqlite", "modernc.org/libc").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	versions, files := map[string]string{}, map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var m struct{ Path, Version, GoMod string }
		if err := decoder.Decode(&m); err != nil {
			t.Fatal(err)
		}
		versions[m.Path], files[m.Path] = m.Version, m.GoMod
	}
	text, err := os.ReadFile(files["modernc.org/sqlite"])
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range parsed.Require {
		if r.Mod.Path == "modernc.org/libc" {
			if r.Mod.Version != versions[r.Mod.Path] {
				t.Errorf("the build uses libc %s, sqlite wants %s", versions[r.Mod.Path], r.Mod.Version)
			}
			return
		}
	}
	t.Error("sqlite's go.mod does not name libc")
}
