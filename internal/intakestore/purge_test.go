package intakestore_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// marked is an entry whose person is a text that cannot be compressed and
// stands nowhere else.
func marked(r *rand.Rand, items int) (e intakestore.Entry, marks []string) {
	e.Header = record.Record{Project: 1, KeyKind: record.KeyServer, Key: 1}
	for range items {
		id := newID(r)
		mark := newID(r)
		text := hex.EncodeToString(mark[:])
		it := record.Item{Type: record.ItemEvent, EventID: id, Claimed: true, Event: "e", AnonID: text}
		e.Items = append(e.Items, intakestore.Item{EventID: id, Claimed: true, Encoded: record.AppendItem(nil, &it)})
		marks = append(marks, text)
	}
	return e, marks
}

// traces counts how many of the texts stand in a file of the folder.
func traces(t *testing.T, dir string, texts []string) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile
		}
		for _, text := range texts {
			n += bytes.Count(content, []byte(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What was trimmed is in no file any more, neither in tables nor in logs, also
// in those that are used again; what was not trimmed, and the claims, are.
func TestPurgedRecordsAreInNoFile(t *testing.T) {
	dir := create(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(1, 2))
	var gone []string
	for round := range 6 {
		e, marks := marked(r, 200)
		commit(t, s, intakestore.Group{Received: 1, Window: window, Entries: []intakestore.Entry{e}})
		if round == 3 { // from tables, too
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := traces(t, dir, marks); n < 100 {
			t.Fatalf("%d traces before: the test could not fail", n)
		}
		gone = append(gone, marks...)
		if err := s.Trim(uint64(len(gone))); err != nil {
			t.Fatal(err)
		}
		kept, stays := marked(r, 1)
		commit(t, s, intakestore.Group{Received: 1, Window: window, Entries: []intakestore.Entry{kept}})
		gone = append(gone, stays...)
		if traces(t, dir, marks) == 0 {
			t.Error("trimming leaves nothing: purging is not needed")
		}
		if err := s.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := traces(t, dir, gone[:len(gone)-1]); n != 0 {
			t.Fatalf("round %d: %d traces after", round, n)
		}
		if records, err := s.Records(uint64(len(gone)), 10); err != nil || records[0].Items[0].AnonID != stays[0] {
			t.Fatalf("what was not trimmed: %v, %v", records, err)
		}
		if _, ok, err := s.FindClaim(ident(e.Items[0].EventID)); !ok || err != nil {
			t.Fatalf("its claim is gone: %v", err)
		}
		if round == 4 {
			closeStore(t, s)
			s = open(t, dir)
		}
	}
	closeStore(t, s)
	if n := traces(t, dir, gone[:len(gone)-1]); n != 0 {
		t.Errorf("%d traces after closing", n)
	}
}

// A snapshot sees what was trimmed since: Purge waits for it, and intake does
// not wait for Purge.
func TestPurgeWaitsForSnapshots(t *testing.T) {
	dir := create(t)
	s := open(t, dir)
	defer func() { closeStore(t, s) }()
	r := rand.New(rand.NewPCG(3, 4))
	e, marks := marked(r, 50)
	commit(t, s, intakestore.Group{Received: 1, Window: window, Entries: []intakestore.Entry{e}})
	view, err := s.Snapshot(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Trim(50); err != nil {
		t.Fatal(err)
	}
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Purge(cut); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	var purging sync.WaitGroup
	purged := make(chan error, 1)
	purging.Go(func() { purged <- s.Purge(context.Background()) })
	for range 20 {
		other, _ := marked(r, 10)
		commit(t, s, intakestore.Group{Received: 1, Window: window, Entries: []intakestore.Entry{other}})
	}
	seen := 0
	if err := view.Records(1, func(r record.Record) error { seen += len(r.Items); return nil }); err != nil || seen != 50 {
		t.Fatalf("the snapshot sees %d items: %v", seen, err)
	}
	select {
	case err := <-purged:
		t.Fatalf("purged under a snapshot: %v", err)
	default:
	}
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-purged; err != nil {
		t.Fatal(err)
	}
	purging.Wait()
	if n := traces(t, dir, marks); n != 0 {
		t.Errorf("%d traces after", n)
	}
}
