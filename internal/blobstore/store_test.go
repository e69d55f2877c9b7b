package blobstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/actionpulse/actionpulse/internal/blobstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eachStore runs a test on every kind of store.
func eachStore(t *testing.T, test func(t *testing.T, s blobstore.Store)) {
	t.Helper()
	stores := map[string]func(t *testing.T) blobstore.Store{
		"folder": func(t *testing.T) blobstore.Store { return openFolder(t, t.TempDir()) },
		"S3":     func(t *testing.T) blobstore.Store { return newBucket(t).open(t, "") },
		"S3 with a prefix": func(t *testing.T) blobstore.Store {
			return newBucket(t).open(t, "a/b")
		},
	}
	if address := os.Getenv("TEST_S3_URL"); address != "" {
		stores["S3 of "+address] = func(t *testing.T) blobstore.Store { return openRealS3(t, address) }
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// openRealS3 opens s3://bucket/prefix?endpoint=…&region=… of a real object store,
// with the keys of the environment, as the setting replay.blobs does. What a
// test leaves there is below the prefix.
func openRealS3(t *testing.T, address string) *blobstore.S3 {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := blobstore.OpenS3(blobstore.S3Options{
		Endpoint: at.Query().Get("endpoint"), Region: at.Query().Get("region"), Bucket: at.Host, Prefix: path.Join(at.Path, rand.Text()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func openFolder(t *testing.T, path string) *blobstore.Folder {
	t.Helper()
	f, err := blobstore.OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestBlobsAreKeptWhole(t *testing.T) {
	eachStore(t, func(t *testing.T, s blobstore.Store) {
		want := map[string][]byte{
			"p/00/empty.zst": {},
			"p/00/small.zst": []byte("small"),
			"p/ff/large.zst": bytes.Repeat([]byte{0, 1, 2, 255}, 1<<20),
			"q/00/small.zst": []byte("of another project"),
			"top":            []byte("in no folder"),
		}
		for name, content := range want {
			if err := s.Put(t.Context(), name, content); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for name, content := range want {
			got, err := s.Get(t.Context(), name)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(content), err)
			}
		}
	})
}

func TestADeletedBlobIsGoneAndNoOther(t *testing.T) {
	eachStore(t, func(t *testing.T, s blobstore.Store) {
		for _, name := range []string{"p/00/a", "q/00/a"} {
			if err := s.Put(t.Context(), name, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time there is none
			if err := s.Delete(t.Context(), "p/00/a"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(t.Context(), "p/00/a"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want fs.ErrNotExist", err)
			}
		}
		if err := s.Delete(t.Context(), "never/was"); err != nil {
			t.Error(err)
		}
		if got, err := s.Get(t.Context(), "q/00/a"); err != nil || string(got) != "q/00/a" {
			t.Errorf("the other one: %q, %v", got, err)
		}
	})
}

func TestNamesStayInside(t *testing.T) {
	eachStore(t, func(t *testing.T, s blobstore.Store) {
		for _, name := range []string{
			"", ".", "..", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "A", "a b", "a\x00b", "a?b", "a\\b", strings.Repeat("a", 201),
		} {
			_, get := s.Get(t.Context(), name)
			for what, err := range map[string]error{"put": s.Put(t.Context(), name, nil), "get": get, "delete": s.Delete(t.Context(), name)} {
				if !errors.Is(err, fs.ErrInvalid) {
					t.Errorf("%s %q: %v, want fs.ErrInvalid", what, name, err)
				}
			}
		}
	})
}

func TestBlobsAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s blobstore.Store) {
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				name := fmt.Sprintf("p/%02d/x", i%4)
				name += fmt.Sprint(i)
				if err := s.Put(context.Background(), name, []byte(name)); err != nil {
					t.Error(err)
				}
				if got, err := s.Get(context.Background(), name); err != nil || string(got) != name {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		all.Wait()
	})
}

// TestFolderIsPrivate: nobody else may read what people did, and nothing lies
// beside the blobs.
func TestFolderIsPrivate(t *testing.T) {
	dir := t.TempDir()
	s := openFolder(t, dir)
	if err := s.Put(t.Context(), "p/00/a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]fs.FileMode{"p": fs.ModeDir | 0o700, "p/00": fs.ModeDir | 0o700, "p/00/a": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "p", "00")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestFolderForgetsWhatWasCutShort: a crash while a blob is written leaves a
// file under another name, which is no blob and goes with it.
func TestFolderForgetsWhatWasCutShort(t *testing.T) {
	dir := t.TempDir()
	s := openFolder(t, dir)
	if err := s.Put(t.Context(), "p/00/a", nil); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "p", "00", "b.new")
	if err := os.WriteFile(cut, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "p/00/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a blob is one: %v", err)
	}
	if err := s.Delete(t.Context(), "p/00/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cut); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestFolderDoesNotFollowLinks out of it.
func TestFolderDoesNotFollowLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "p")); err != nil {
		t.Fatal(err)
	}
	if err := openFolder(t, dir).Put(t.Context(), "p/a", nil); err == nil {
		t.Error("a blob was written outside")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestFolderMustBeThere(t *testing.T) {
	if _, err := blobstore.OpenFolder(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
