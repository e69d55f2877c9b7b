package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
)

// filled returns a writer that has taken a file in.
func filled(t *testing.T) *Writer {
	t.Helper()
	from := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(from, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Create(filepath.Join(t.TempDir(), "backup"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Copy(t.Context(), from, "data/file"); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestFinish(t *testing.T) {
	t.Parallel()
	w := filled(t)
	made, err := w.Finish(Manifest{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	read, err := Open(w.dir)
	if err != nil || read.Program != "test" || len(read.Files) != 1 || read.Files[0] != made.Files[0] || !read.Secrets {
		t.Errorf("got %+v, %v", read, err)
	}
}

// Whatever fails at the end, nothing is left that could be taken for a backup,
// and nothing is removed that somebody else has put there.
func TestAFailureOfFinishLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]string{
		"the manifest cannot be written": atomicfile.Temporary(ManifestFile),
		"it cannot get its name":         ManifestFile,
	} {
		w := filled(t)
		if err := os.MkdirAll(filepath.Join(w.dir, taken, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := w.Finish(Manifest{})
		entries, readErr := os.ReadDir(w.dir)
		if !errors.Is(err, ErrOccupied) || readErr != nil || len(entries) != 1 || entries[0].Name() != taken {
			t.Errorf("%s: %v; %v %v is left", name, err, entries, readErr)
		}
	}
}

// What was removed or changed behind the writer's back is no backup.
func TestFinishLooksAtTheFiles(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 1) },
	} {
		w := filled(t)
		if err := change(filepath.Join(w.dir, "data", "file")); err != nil {
			t.Fatal(err)
		}
		_, err := w.Finish(Manifest{})
		entries, readErr := os.ReadDir(w.dir)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "data/file") || readErr != nil || len(entries) > 0 {
			t.Errorf("%s: %v; %v %v is left", name, err, entries, readErr)
		}
	}
}

// Of several writers one gets the folder, and what the others do when they are
// refused takes nothing away from it.
func TestOneWriterGetsTheFolder(t *testing.T) {
	t.Parallel()
	from := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(from, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		dir := filepath.Join(t.TempDir(), "backup")
		begin := make(chan struct{})
		results := make(chan error)
		for range 4 {
			go func() {
				<-begin
				w, err := Create(dir, nil)
				if err == nil {
					err = w.Copy(t.Context(), from, "data/file")
				}
				if err == nil {
					_, err = w.Finish(Manifest{})
				}
				results <- err
			}()
		}
		close(begin)
		made := 0
		for range 4 {
			if err := <-results; err == nil {
				made++
			} else if !errors.Is(err, ErrOccupied) {
				t.Error(err)
			}
		}
		if _, err := Open(dir); made != 1 || err != nil {
			t.Fatalf("%d backups were made: %v", made, err)
		}
	}
}

// A writer that is cut short removes its own files, and is not in the way of the
// next.
func TestDiscard(t *testing.T) {
	t.Parallel()
	w := filled(t)
	if _, err := Create(w.dir, nil); !errors.Is(err, ErrOccupied) {
		t.Errorf("beside another: %v", err)
	}
	foreign := filepath.Join(w.dir, "diary")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Path("diary"); !errors.Is(err, ErrOccupied) {
		t.Errorf("over somebody else's file: %v", err)
	}
	if err := w.Discard(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "diary" {
		t.Errorf("%v %v is left", entries, err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(w.dir, nil); err != nil {
		t.Error(err)
	}
}
