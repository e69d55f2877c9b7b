package eventstore_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// takenOf lists whose data the erasures of a person have taken.
func takenOf(t *testing.T, s *eventstore.Store, p eventstore.Person, position uint64) (list []string) {
	t.Helper()
	taken, err := s.Taken(t.Context(), 1, p, position)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range taken {
		to := fmt.Sprint(one.To)
		if one.To == math.MaxInt64 {
			to = "on"
		}
		list = append(list, fmt.Sprintf("%s%s %d %s", one.Person.AnonID, one.Person.UserID, one.From, to))
	}
	return list
}

// TestTaken: an erasure keeps whose data it has taken, by what was before it:
// the spans of anon ids, and whom events and links named beside the person. It
// is kept whatever comes later, and until it is forgotten.
func TestTaken(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	both := event("e", "z", "ada", 1000)
	l.add(1000, alias("x", "ada", 1000), alias("x", "bob", 5000), alias("y", "ada", 2000), alias("other", "eve", 1000), both, event("e", "other", "bob", 1000))
	r := l.make(1000, erase(ada))
	l.apply(r)
	l.add(1000, alias("w", "ada", 1000))
	spans := takenOf(t, s, ada, r.Position)
	if len(spans) != 6 || !slices.Contains(spans, "bob 0 0") { // x was bob's until a link said that it was ada's
		t.Errorf("%v", spans)
	}
	for _, one := range spans {
		if one[0] != 'x' && one[0] != 'y' && one[0] != 'z' && one != "bob 0 0" {
			t.Errorf("%s is nobody's: %v", one, spans)
		}
	}
	want(t, takenOf(t, s, ada, r.Position-1), `null`)
	keep := func(p eventstore.Person, position uint64, others ...eventstore.Person) error {
		return s.KeepTaken(t.Context(), eventstore.TakenParams{Project: 1, Person: p, Position: position, Others: others})
	}
	for range 2 {
		if err := keep(ada, r.Position, eventstore.Person{AnonID: "recorded"}, eventstore.Person{UserID: "named"}); err != nil {
			t.Fatal(err)
		}
	}
	kept := takenOf(t, s, ada, r.Position)
	if len(kept) != 8 || !slices.Contains(kept, "recorded 0 0") || !slices.Contains(kept, "named 0 0") {
		t.Errorf("%v", kept)
	}
	if err := keep(ada, r.Position-1, eventstore.Person{AnonID: "nobody's"}); err != nil || len(takenOf(t, s, ada, r.Position)) != 8 {
		t.Errorf("what no erasure has taken is kept: %v", err)
	}
	l.add(1000, erase(eventstore.Person{AnonID: "other"}))
	l.add(1000, erase(eventstore.Person{AnonID: "x"}))
	want(t, takenOf(t, s, eventstore.Person{AnonID: "other"}, math.MaxInt64), `["bob 0 0","eve 0 0"]`)
	want(t, takenOf(t, s, eventstore.Person{AnonID: "x"}, math.MaxInt64), `["bob 0 0"]`)
	for range 2 {
		if err := s.ForgetTaken(t.Context(), 1, ada, r.Position); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Rewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, takenOf(t, s, ada, math.MaxInt64), `null`)
	want(t, takenOf(t, s, eventstore.Person{AnonID: "x"}, math.MaxInt64), `["bob 0 0"]`)
	var nobody record.Person
	if keep(nobody, 1) == nil || keep(ada, 1, nobody) == nil {
		t.Error("nobody was kept")
	}
	if _, err := s.Taken(t.Context(), 1, nobody, 1); err == nil || s.ForgetTaken(t.Context(), 1, nobody, 1) == nil {
		t.Error("nobody was taken")
	}
}
