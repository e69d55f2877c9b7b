package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
)

func TestWriteReplacesAndLeavesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, content := range []string{"one", "two"} {
		if err := atomicfile.Write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Fatalf("%q, %v", got, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "none", "f"), nil); err == nil {
		t.Fatal("wrote into a folder that is not there")
	}
}
