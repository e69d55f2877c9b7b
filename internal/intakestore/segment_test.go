package intakestore

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/actionpulse/actionpulse/internal/record"
)

// A segment's filter may reach the disk although the group that was to seal
// the segment did not. What is claimed afterwards must be found all the same.
func TestAFilterOfASealingThatDidNotComeToPassIsNotUsed(t *testing.T) {
	o := newStore(t)
	s := reopen(t, nil, o)
	claim(t, s, 1)
	s.saveFilter(s.segments[0])
	s.background.Wait()
	s = reopen(t, s, o)
	if got := s.segments[0]; got.count != 1 || got.end != 1 {
		t.Errorf("the segment has %d claims until %d", got.count, got.end)
	}
	claim(t, s, 2)
	s = reopen(t, s, o)
	for n := range byte(2) {
		if _, ok, err := s.FindClaim(record.Identity{Project: 1, EventID: record.EventID{n + 1}}); !ok || err != nil {
			t.Errorf("claim %d is not found: %v", n+1, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func place(t *testing.T, dir string) Options {
	t.Helper()
	return Options{
		Dir: filepath.Join(dir, "intake"), Mark: filepath.Join(dir, "ACKNOWLEDGED"), CacheBytes: 1 << 20,
		Log: slog.New(slog.DiscardHandler), Fatal: func(err error) { panic(err) },
	}
}

func reopen(t *testing.T, s *Store, o Options) *Store {
	t.Helper()
	if s != nil {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// claim commits one item, received at n milliseconds.
func claim(t *testing.T, s *Store, n byte) {
	t.Helper()
	id := record.EventID{n}
	it := record.Item{Type: record.ItemEvent, EventID: id, Claimed: true, Event: "e"}
	pending, err := s.Commit(Group{Received: int64(n), Window: 1000, Entries: []Entry{{
		Header: record.Record{Project: 1},
		Items:  []Item{{EventID: id, Claimed: true, Encoded: record.AppendItem(nil, &it)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := pending.Wait(); err != nil {
		t.Fatal(err)
	}
}
