package intakestore

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

func testOptions(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{
		Dir: filepath.Join(dir, "intake"), Mark: filepath.Join(dir, "mark"), Log: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { panic(err) },
	}
	if err := Create(o, [16]byte{1}, State{}); err != nil {
		t.Fatal(err)
	}
	return o
}

// withStore opens the store, lets fn use it and closes it again.
func withStore(t *testing.T, o Options, fn func(*Store)) {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	fn(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

const testWindow = int64(48 * time.Hour / time.Millisecond)

// testGroup is one request with as many claimed items as ids are given.
func testGroup(received int64, ids ...byte) Group {
	e := Entry{Header: record.Record{Project: 1, KeyKind: record.KeyServer, Key: 1}}
	for _, id := range ids {
		it := record.Item{Type: record.ItemEvent, EventID: record.EventID{id}, Claimed: true, Event: "e"}
		e.Items = append(e.Items, Item{EventID: it.EventID, Claimed: true, Encoded: record.AppendItem(nil, &it)})
	}
	return Group{Received: received, Window: testWindow, Entries: []Entry{e}}
}

func store(t *testing.T, s *Store, g Group) {
	t.Helper()
	p, err := s.Commit(g)
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wantClaim(t *testing.T, s *Store, id byte, received int64) {
	t.Helper()
	got, ok, err := s.FindClaim(record.Identity{Project: 1, KeyKind: record.KeyServer, EventID: record.EventID{id}})
	if err != nil || !ok || got != (dedup.Claim{Received: received}) {
		t.Errorf("claim of %d: %+v %v %v, want one of %d", id, got, ok, err, received)
	}
}

// The process may die after a segment was to be sealed and before the group
// that seals it is written. The segment then takes more claims, and a filter
// that was saved for it would deny them.
func TestASegmentThatWasNotSealedAfterAllLosesNoClaim(t *testing.T) {
	o := testOptions(t)
	hour := time.Hour.Milliseconds()
	withStore(t, o, func(s *Store) {
		store(t, s, testGroup(0, 1))
		batch := s.db.NewBatch()
		if _, err := s.fill(batch, testGroup(12*hour, 2)); err != nil {
			t.Fatal(err)
		}
		s.background.Wait()
		if err := batch.Close(); err != nil { // the process dies here
			t.Fatal(err)
		}
	})
	withStore(t, o, func(s *Store) { store(t, s, testGroup(11*hour, 3)) })
	withStore(t, o, func(s *Store) {
		wantClaim(t, s, 1, 0)
		wantClaim(t, s, 3, 11*hour)
		// Sealed now, it must live as long as its newest claim.
		store(t, s, testGroup(12*hour, 4))
		if err := s.Trim(s.State().Last); err != nil {
			t.Fatal(err)
		}
		store(t, s, testGroup(11*hour+testWindow, 5))
		wantClaim(t, s, 3, 11*hour)
	})
}

// What the event store holds may end within a record, where storing item by
// item was cut short.
func TestTrimKeepsARecordThatIsNeededInPart(t *testing.T) {
	o := testOptions(t)
	withStore(t, o, func(s *Store) {
		store(t, s, testGroup(0, 1, 2))
		store(t, s, testGroup(0, 3, 4, 5))
		store(t, s, testGroup(0, 6))
		for _, through := range []uint64{4, 4, 3, 2} {
			if err := s.Trim(through); err != nil {
				t.Fatal(err)
			}
		}
		if first, err := s.First(); err != nil || first != 3 {
			t.Errorf("first is %d, %v", first, err)
		}
		records, err := s.Records(5, 100)
		if err != nil || len(records) != 2 || records[0].Position != 5 || len(records[0].Items) != 1 {
			t.Errorf("got %+v, %v", records, err)
		}
		if _, err := s.Records(2, 100); !errors.Is(err, ErrGap) {
			t.Errorf("got %v, want a gap", err)
		}
		if err := s.Trim(6); err != nil {
			t.Fatal(err)
		}
		if first, err := s.First(); err != nil || first != 7 || s.Trimmed() != 6 {
			t.Errorf("first is %d, %v, trimmed %d", first, err, s.Trimmed())
		}
	})
}
