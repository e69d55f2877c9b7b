package intakestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/actionpulse/actionpulse/internal/record"
)

// The engine opens with an older list of its files if the newest edit of the
// list is damaged or missing, even where it ends between two edits. The table
// of that edit is lost then, and the log that it was made from is gone, while
// what came later is in the next log.
func TestAStoreWithADamagedManifestIsRefusedOrWhole(t *testing.T) {
	o := newStore(t)
	s := reopen(t, nil, o)
	claim(t, s, 1)
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s, o)
	claim(t, s, 2)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	claim(t, s, 3)
	killed := copyKilled(t, o)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	manifest := currentManifest(t, killed)
	whole, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{}
	for size := range whole {
		damaged["cut short"] = whole[:size]
		damaged["flipped"] = append([]byte(nil), whole...)
		damaged["flipped"][size] ^= 1
		for how, content := range damaged {
			refusedOrWhole(t, killed, content, how, size)
		}
	}
}

func newStore(t *testing.T) Options {
	t.Helper()
	o := place(t, t.TempDir())
	if err := Create(o, [16]byte{1}, State{Window: 1000}); err != nil {
		t.Fatal(err)
	}
	return o
}

func currentManifest(t *testing.T, o Options) string {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(o.Dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifest: %v", err)
	}
	return manifests[len(manifests)-1]
}

func refusedOrWhole(t *testing.T, killed Options, manifest []byte, how string, at int) {
	t.Helper()
	o := copyKilled(t, killed)
	if err := os.WriteFile(currentManifest(t, o), manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(o)
	if err != nil {
		return
	}
	for n := range byte(3) {
		if _, ok, err := s.FindClaim(record.Identity{Project: 1, EventID: record.EventID{n + 1}}); !ok || err != nil {
			t.Errorf("with the manifest %s at %d, claim %d is not found: %v", how, at, n+1, err)
		}
	}
	if records, err := s.Records(1, 10); err != nil || len(records) != 3 {
		t.Errorf("with the manifest %s at %d, %d records: %v", how, at, len(records), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// copyKilled copies a store that may be in use, as the death of its process
// would leave it.
func copyKilled(t *testing.T, o Options) Options {
	t.Helper()
	for {
		to := t.TempDir()
		err := os.CopyFS(to, os.DirFS(filepath.Dir(o.Dir)))
		if err == nil {
			return place(t, to)
		}
		if !errors.Is(err, fs.ErrNotExist) { // else the engine tidied up meanwhile
			t.Fatal(err)
		}
	}
}
