package eventstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// claimed returns an event of a user whose id the client chose.
func claimed(id byte, userID string, received int64) record.Item {
	it := event("e", "", userID, received)
	it.EventID, it.Claimed, it.Fingerprint = record.EventID{id}, true, uint32(id)
	return it
}

// claimedIDs lists the first bytes of the ids whose claims are kept.
func claimedIDs(tb testing.TB, s *eventstore.Store) (ids []byte) {
	tb.Helper()
	snap, err := s.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	err = snap.Claims(tb.Context(), 0, func(id record.Identity, _ int64, fingerprint uint32) error {
		if fingerprint != uint32(id.EventID[0]) {
			return fmt.Errorf("fingerprint %d of %v", fingerprint, id)
		}
		ids = append(ids, id.EventID[0])
		return nil
	})
	if err := errors.Join(err, snap.Close()); err != nil {
		tb.Fatal(err)
	}
	return ids
}

var ada = eventstore.Person{UserID: "ada"}

// Erasures within one batch take what is before them in the batch and leave
// what is after; nobody minds that a person is unknown or erased already.
func TestErasuresWithinABatch(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	l.apply(
		l.make(1000, claimed(1, "ada", 1000), claimed(2, "bob", 1000)),
		l.make(1000, erase(ada)),
		l.make(1000, claimed(3, "ada", 1000)),
		l.make(1000, erase(eventstore.Person{AnonID: "nobody"})),
		l.make(1000, erase(ada)),
		l.make(1000, erase(ada)),
		l.make(1000, claimed(4, "ada", 1000), claimed(5, "bob", 1000)),
	)
	if mark := markOf(t, s); mark.Rows != 3 || mark.Position != 9 {
		t.Errorf("mark %+v", mark)
	}
	want(t, claimedIDs(t, s), show([]byte{1, 2, 3, 4, 5}))
	usage := usageOf(t, s)
	if len(usage) != 1 || usage[0].Events != 5 {
		t.Errorf("usage %+v", usage)
	}
	for position, wanted := range map[uint64]eventstore.ErasureState{
		3: eventstore.ErasureApplied, 4: eventstore.ErasureMissing, 6: eventstore.ErasureApplied, 10: eventstore.ErasureWaiting,
	} {
		if got, err := s.ErasureState(t.Context(), 1, ada, position); got != wanted || err != nil {
			t.Errorf("position %d: state %v, %v", position, got, err)
		}
	}
	if got, err := s.ErasureState(t.Context(), 2, ada, 3); got != eventstore.ErasureMissing || err != nil {
		t.Errorf("another project: state %v, %v", got, err)
	}
}

// A batch that fails takes nobody away.
func TestAFailedBatchErasesNobody(t *testing.T) {
	s := open(t, eventstore.Options{Fault: func(it *record.Item) error {
		if it.Event == "bad" {
			return errors.New("bad")
		}
		return nil
	}})
	l := newLog(t, s)
	l.add(1000, claimed(1, "ada", 1000))
	_, err := s.Apply(t.Context(), eventstore.ApplyParams{
		Records: []record.Record{l.make(1000, erase(ada)), l.make(1000, event("bad", "x", "", 0))},
	})
	if err == nil {
		t.Fatal("it was applied")
	}
	checkRows(t, s, 1)
}

// The claims of erased rows are kept until their window has passed, and then
// forgotten.
func TestKeptClaimsExpire(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	l.add(1000, claimed(1, "ada", 1000))
	l.add(1000+window, claimed(2, "ada", 1000+window), erase(ada))
	want(t, claimedIDs(t, s), show([]byte{1, 2}))
	l.add(1001+window+window/8, claimed(3, "bob", 0))
	want(t, claimedIDs(t, s), show([]byte{2, 3}))
	l.add(2000+3*window, claimed(4, "bob", 0))
	want(t, claimedIDs(t, s), show([]byte{3, 4}))
}

// Of rows that are deleted for their age the claims within the window stay,
// and the newest row: age is counted up to it, however far ahead the clock is,
// and by the clock, if that is behind.
func TestClaimsOutliveRetention(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	l.add(1000, claimed(1, "ada", 0))
	l.add(2000+window, claimed(2, "ada", 0))
	l.add(3000+window, claimed(3, "ada", 3000+window))
	for _, r := range []eventstore.Retention{
		{Now: 1000 << 40, Keep: 2000 + window}, {Now: 1000, Keep: -window}, {Now: 1000 + window, Keep: window},
	} {
		r.Project, r.Window = 1, window
		if deleted, err := s.DeleteOlder(t.Context(), r); deleted != 0 || err != nil {
			t.Fatalf("%+v: deleted %d, %v", r, deleted, err)
		}
	}
	deleted, err := s.DeleteOlder(t.Context(), eventstore.Retention{Project: 1, Now: 1000 << 40, Window: window})
	if deleted != 2 || err != nil {
		t.Fatalf("deleted %d, %v", deleted, err)
	}
	checkRows(t, s, 1)
	want(t, claimedIDs(t, s), show([]byte{2, 3}))
	if usage := usageOf(t, s); usage[0].Events != 3 {
		t.Errorf("usage %+v", usage)
	}
}

// What was set aside is the person's too: by its user_id, its anon_id, or the
// link that makes it the user's. Its claims stay.
func TestQuarantinedItemsAreErased(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	l.add(1000, alias("x", "ada", 1000))
	items := []record.Item{
		claimed(1, "ada", 1000), event("linked", "x", "", 1000), claimed(2, "bob", 1000), event("other", "y", "", 1000),
		identify("z", "ada", 1000, `{"a":1}`), alias("z", "ada", 1000),
	}
	r := l.make(1000, items...)
	aside := map[uint64]string{}
	for i := range items {
		aside[r.Position+uint64(i)] = "a test"
	}
	if _, err := s.Apply(t.Context(), eventstore.ApplyParams{Records: []record.Record{r}, Quarantine: aside}); err != nil {
		t.Fatal(err)
	}
	exported, err := exportOf(t.Context(), s, 1, ada)
	if err != nil {
		t.Fatal(err)
	}
	want(t, exported, `["link 1 x ada","quarantined 2","quarantined 3","quarantined 6","quarantined 7"]`)
	l.add(1000, erase(ada))
	if mark := markOf(t, s); mark.Quarantined != 2 {
		t.Errorf("mark %+v", mark)
	}
	want(t, claimedIDs(t, s), show([]byte{1, 2}))
	if stored, left, err := s.Redrive(t.Context()); stored != 2 || left != 0 || err != nil {
		t.Errorf("stored %d, left %d, %v", stored, left, err)
	}
	checkRows(t, s, 2)
}

// An erasure that was set aside and is applied late takes what it would have
// taken at its position, and nothing that came after it.
func TestALateErasure(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	l.add(1000, identify("x", "ada", 1000, `{"a":1}`), event("before", "x", "", 1000), event("other", "y", "", 1000))
	r := l.make(1000, erase(ada))
	if _, err := s.Apply(t.Context(), eventstore.ApplyParams{
		Records: []record.Record{r}, Quarantine: map[uint64]string{r.Position: "a test"},
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.ErasureState(t.Context(), 1, ada, r.Position); got != eventstore.ErasureMissing || err != nil {
		t.Errorf("state %v, %v", got, err)
	}
	l.add(1000, alias("y", "ada", 1000), event("after", "x", "", 1000), identify("x", "ada", 1000, `{"b":1}`))
	if stored, left, err := s.Redrive(t.Context()); stored != 1 || left != 0 || err != nil {
		t.Fatalf("stored %d, left %d, %v", stored, left, err)
	}
	// y was linked after the erasure, so what y had sent before it stays.
	exported, err := exportOf(t.Context(), s, 1, ada)
	if err != nil {
		t.Fatal(err)
	}
	want(t, exported, `["event 3 other","event 7 identify","link 5 y ada","trait 7"]`)
	checkRows(t, s, 3)
}

func TestAPersonHasOneID(t *testing.T) {
	s := open(t, eventstore.Options{})
	for _, p := range []eventstore.Person{{}, {UserID: "a", AnonID: "b"}} {
		if err := s.ExportPerson(t.Context(), 1, p, nil); !errors.Is(err, eventstore.ErrNoPerson) {
			t.Errorf("export of %+v: %v", p, err)
		}
		if _, err := s.ErasureState(t.Context(), 1, p, 1); !errors.Is(err, eventstore.ErrNoPerson) {
			t.Errorf("state of %+v: %v", p, err)
		}
	}
}

// Usage is added up now and then; its sums stay what they are.
func TestUsageIsAddedUp(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	for range 300 {
		l.add(1000, event("e", "x", "", 1000))
	}
	usage := usageOf(t, s)
	if len(usage) != 1 || usage[0].Events != 300 || usage[0].Bytes != 300*int64(len(record.AppendItem(nil, new(event("e", "x", "", 1000))))) {
		t.Errorf("got %+v", usage)
	}
}
