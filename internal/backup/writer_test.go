package backup

import (
	"os"
	"path/filepath"
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

// Whatever fails at the end, nothing is left that could be taken for a backup.
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
		if err == nil || readErr != nil || len(entries) > 0 {
			t.Errorf("%s: %v; %v %v is left", name, err, entries, readErr)
		}
	}
}
