package eventstore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

func TestCreateAndOpenRefuse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.duckdb")
	if _, err := eventstore.Open(t.Context(), eventstore.Options{Path: path}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open without a file: %v", err)
	}
	if err := eventstore.Create(t.Context(), path, storeID); err != nil {
		t.Fatal(err)
	}
	if err := eventstore.Create(t.Context(), path, storeID); err == nil {
		t.Error("a store was created over another")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := eventstore.Open(t.Context(), eventstore.Options{Path: path}); err == nil {
		t.Error("a damaged file was opened")
	}
}

func TestApplyReopened(t *testing.T) {
	opts := eventstore.Options{Path: filepath.Join(t.TempDir(), "events.duckdb")}
	if err := eventstore.Create(t.Context(), opts.Path, storeID); err != nil {
		t.Fatal(err)
	}
	s, err := eventstore.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	l := newLog(t, s)
	first := l.make(1000, event("a", "x", "", 900), event("a", "y", "", 901))
	second := l.make(2000, alias("x", "ann", 2000), identify("y", "bob", 950, `{"plan":"pro"}`))
	second.Project = 7
	got := l.apply(first, second)
	wanted := eventstore.Mark{Store: storeID, Position: 4, Received: 2000, MaxProject: 7, Rows: 3}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, opts)
	got, err = again.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("after opening again: %s", diff)
	}
}

func TestApplyRefusals(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	l.add(1000, event("a", "x", "", 900))
	next := l.make(1001, event("a", "x", "", 901))
	gap, foreign, empty, late := next, next, next, next
	gap.Position++
	foreign.Store[0]++
	empty.Items = nil
	late.Position--
	for name, c := range map[string]struct {
		records []record.Record
		wanted  error
	}{
		"gap before":      {[]record.Record{gap}, eventstore.ErrGap},
		"gap between":     {[]record.Record{next, gap, gap}, eventstore.ErrGap},
		"repeated":        {[]record.Record{late}, eventstore.ErrGap},
		"another store":   {[]record.Record{foreign}, eventstore.ErrForeign},
		"without an item": {[]record.Record{empty}, eventstore.ErrGap},
		"foreign at last": {[]record.Record{next, foreign}, eventstore.ErrForeign},
	} {
		if _, err := s.Apply(t.Context(), eventstore.ApplyParams{Records: c.records}); !errors.Is(err, c.wanted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rows := count(t, s); rows != 1 {
		t.Errorf("%d rows after refusals, want 1", rows)
	}
	if mark := l.apply(next); mark.Position != 2 {
		t.Errorf("position %d, want 2", mark.Position)
	}
}

func count(tb testing.TB, s *eventstore.Store) int64 {
	tb.Helper()
	snap, err := s.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	n, err := snap.RowCount(tb.Context())
	if err := errors.Join(err, snap.Close()); err != nil {
		tb.Fatal(err)
	}
	return n
}

// After an error in the middle of a batch nothing of it is visible, the store
// works, and the item that was at fault can be set aside.
func TestApplyErrorThenQuarantineThenRedrive(t *testing.T) {
	errFault := errors.New("cannot be stored")
	broken := true
	s := open(t, eventstore.Options{Fault: func(it *record.Item) error {
		if broken && it.AnonID == "poison" {
			return errFault
		}
		return nil
	}})
	l := newLog(t, s)
	l.add(1000, event("a", "x", "", 900))
	var items []record.Item
	for range 5000 { // more than one chunk of the appender
		items = append(items, identify("y", "bob", 901, `{"n":1}`))
	}
	items = append(items, identify("poison", "eve", 902, `{"n":2}`), event("a", "z", "", 903))
	items[len(items)-2].Claimed = true
	r := l.make(1001, items...)
	_, err := s.Apply(t.Context(), eventstore.ApplyParams{Records: []record.Record{r}})
	item, ok := errors.AsType[*eventstore.ItemError](err)
	if !ok || item.Position != 5002 || !errors.Is(err, errFault) {
		t.Fatalf("got %v", err)
	}
	if rows := count(t, s); rows != 1 {
		t.Fatalf("%d rows after the error, want 1", rows)
	}
	want(t, ask(t, s, `{"type":"events","person":"bob"}`)["items"], `[]`)
	mark, err := s.Apply(t.Context(), eventstore.ApplyParams{
		Records: []record.Record{r}, Quarantine: map[uint64]string{5002: "for a test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	wanted := eventstore.Mark{Store: storeID, Position: 5003, Received: 1001, MaxProject: 1, Rows: 5002, Quarantined: 1}
	if diff := cmp.Diff(wanted, mark); diff != "" {
		t.Error(diff)
	}
	checkQuarantine(t, s, r.Items[5000])
	if stored, left, err := s.Redrive(t.Context()); stored != 0 || left != 1 || err != nil {
		t.Fatalf("redrive while broken: %d stored, %d left, %v", stored, left, err)
	}
	broken = false
	if stored, left, err := s.Redrive(t.Context()); stored != 1 || left != 0 || err != nil {
		t.Fatalf("redrive: %d stored, %d left, %v", stored, left, err)
	}
	wanted.Rows, wanted.Quarantined = 5003, 0
	if mark, err = s.Mark(t.Context()); err != nil || mark != wanted {
		t.Errorf("mark %+v, %v, want %+v", mark, err, wanted)
	}
	got := ask(t, s, `{"type":"events","person":"eve"}`)["items"].([]any)
	if len(got) != 1 || got[0].(map[string]any)["received_at"] != "1970-01-01T00:00:01.001Z" {
		t.Errorf("redriven: %s", show(got))
	}
}

// checkQuarantine says that the item is listed and still holds its claim.
func checkQuarantine(t *testing.T, s *eventstore.Store, it record.Item) {
	t.Helper()
	list, err := s.ListQuarantined(t.Context(), 0, 10)
	if err != nil || len(list) != 1 || list[0].Reason != "for a test" {
		t.Fatalf("%+v, %v", list, err)
	}
	got := list[0].Record.Items[0]
	if got.AnonID != it.AnonID || got.EventID != it.EventID || list[0].Record.Received != 1001 {
		t.Errorf("quarantined %+v", list[0].Record)
	}
	claims := claimsOf(t, s, 0)
	if len(claims) != 1 || claims[0].EventID != it.EventID {
		t.Errorf("claims %+v", claims)
	}
}

func claimsOf(tb testing.TB, s *eventstore.Store, since int64) []record.Identity {
	tb.Helper()
	snap, err := s.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	var ids []record.Identity
	last := int64(0)
	err = snap.Claims(tb.Context(), since, func(id record.Identity, received int64, _ uint32) error {
		if received < last {
			tb.Errorf("claim received at %d follows one received at %d", received, last)
		}
		last = received
		ids = append(ids, id)
		return nil
	})
	if err := errors.Join(err, snap.Close()); err != nil {
		tb.Fatal(err)
	}
	return ids
}

func TestUnstorableItems(t *testing.T) {
	s := open(t, eventstore.Options{})
	for name, it := range map[string]record.Item{
		"not UTF-8":       event("a\xff", "x", "", 1),
		"after year 9999": event("a", "x", "", 253402300800000),
		"no such type":    {Type: 9, AnonID: "x"},
		"traits broken":   identify("x", "y", 1, `{"a":`),
		"link without":    alias("x", "", 1),
	} {
		l := newLog(t, s)
		_, err := s.Apply(t.Context(), eventstore.ApplyParams{Records: []record.Record{l.make(1, it)}})
		if item, ok := errors.AsType[*eventstore.ItemError](err); !ok || item.Position != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	newLog(t, s).add(1, event("a", "x", "", 1))
}

func TestApplyCancelled(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	r := l.make(1, event("a", "x", "", 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Apply(ctx, eventstore.ApplyParams{Records: []record.Record{r}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	l.apply(r)
}

func TestRepeated(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	same := event("a", "x", "", 1)
	same.Claimed, same.EventID = true, record.EventID{1}
	other := same
	other.EventID = record.EventID{2}
	unclaimed := event("a", "x", "", 1)
	unclaimed.EventID = record.EventID{3}
	l.apply(
		l.make(1000, same, other, unclaimed, unclaimed),
		l.make(1000+window+1, same),                    // a second event
		l.make(1000+2*window+1, same),                  // exactly the window: a repeat
		shorter(l.make(1000+2*window+500, other), 100), // fine in any window
		shorter(l.make(1000+2*window+601, other), 100), // 101 ms later, window 100
		shorter(l.make(1000+2*window+701, other), 100)) // a repeat
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := snap.Repeated(t.Context(), 10)
	if err := errors.Join(err, snap.Close()); err != nil {
		t.Fatal(err)
	}
	id := record.Identity{Project: 1, KeyKind: record.KeyServer, EventID: record.EventID{1}}
	id2 := id
	id2.EventID = record.EventID{2}
	wanted := []eventstore.Repeat{
		{Identity: id, First: 5, Second: 6, FirstReceived: 1000 + window + 1, SecondReceived: 1000 + 2*window + 1},
		{Identity: id2, First: 8, Second: 9, FirstReceived: 1000 + 2*window + 601, SecondReceived: 1000 + 2*window + 701},
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
	if claims := claimsOf(t, s, 1000+2*window+1); len(claims) != 4 {
		t.Errorf("%d claims, want 4", len(claims))
	}
}

func shorter(r record.Record, window int64) record.Record {
	r.Window = window
	return r
}
