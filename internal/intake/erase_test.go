package intake_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/record"
)

func (s *system) erase(p intake.Person) uint64 {
	s.t.Helper()
	position, err := s.service.Erase(s.t.Context(), 1, p)
	if err != nil {
		s.t.Fatal(err)
	}
	return position
}

// An erasure stands in the stream where it was asked for, claims nothing, and
// leaves the claims before it as they are.
func TestAnErasureIsARecordInOrder(t *testing.T) {
	s := newSystem(t)
	a, b := uuid.NewString(), uuid.NewString()
	s.expect(server, batch(item(a)), 1, 0)
	if got := s.erase(intake.Person{AnonID: "x"}); got != 2 {
		t.Fatalf("position %d, want 2", got)
	}
	s.expect(server, batch(item(a), item(b)), 2, 1)
	if got := s.erase(intake.Person{UserID: "u"}); got != 4 {
		t.Fatalf("position %d, want 4", got)
	}
	s.restart()
	s.expect(server, batch(item(a)), 1, 1)
	var types []record.ItemType
	for _, r := range s.records() {
		for i := range r.Items {
			types = append(types, r.Items[i].Type)
		}
	}
	want := []record.ItemType{record.ItemEvent, record.ItemErase, record.ItemEvent, record.ItemErase}
	if len(types) != len(want) {
		t.Fatalf("got %v", types)
	}
	for i := range want {
		if types[i] != want[i] {
			t.Fatalf("got %v", types)
		}
	}
	last := s.records()[3]
	if it := last.Items[0]; it.Claimed || it.Person() != (record.Person{UserID: "u"}) || last.Project != 1 || last.Received == 0 {
		t.Errorf("got %+v", last)
	}
}

// Requests of one group: each erasure has a position of its own.
func TestErasuresInOneGroup(t *testing.T) {
	s := newSystem(t)
	var mu sync.Mutex
	var senders sync.WaitGroup
	seen := map[uint64]bool{}
	for range 16 {
		senders.Go(func() {
			s.track(server, batch(item(uuid.NewString())))
			position := s.erase(intake.Person{AnonID: "x"})
			mu.Lock()
			defer mu.Unlock()
			seen[position] = true
		})
	}
	senders.Wait()
	for _, r := range s.records() {
		if erases := r.Items[0].Type == record.ItemErase; erases != seen[r.Position] {
			t.Errorf("position %d: erasure %v, answered %v", r.Position, erases, seen[r.Position])
		}
	}
	if len(seen) != 16 {
		t.Errorf("%d positions for 16 erasures", len(seen))
	}
}

func TestErasuresThatAreRefused(t *testing.T) {
	s := newSystem(t)
	long := strings.Repeat("é", 200)
	for _, p := range []intake.Person{{}, {UserID: "u", AnonID: "a"}, {UserID: long + "e"}, {AnonID: long + "e"}} {
		if _, err := s.service.Erase(t.Context(), 1, p); !errors.Is(err, fault.New(api.CodeValidationFailed, "")) {
			t.Errorf("%+v: got %v", p, err)
		}
	}
	s.guard.Store(fault.New(api.CodeInternal, "full"))
	if _, err := s.service.Erase(t.Context(), 1, intake.Person{UserID: "u"}); !errors.Is(err, fault.New(api.CodeInternal, "")) {
		t.Errorf("got %v", err)
	}
	s.guard.Store(nil)
	if n := len(s.records()); n != 0 {
		t.Fatalf("%d records were written", n)
	}
	s.erase(intake.Person{UserID: long})
}

// What was received before an erasure is not shown any more, whoever sent it;
// other projects' items and the counts stay.
func TestTheDebuggerForgets(t *testing.T) {
	s := newSystem(t)
	other := intake.Source{Project: 2, KeyKind: record.KeyServer, Key: 2}
	id := uuid.NewString()
	for _, src := range []intake.Source{server, other} {
		s.expect(src, batch(item(id)), 1, 0)
		s.expect(src, batch(item(id)), 1, 1)
	}
	s.erase(intake.Person{UserID: "u"})
	if d := s.service.Debug(1); len(d.Accepted)+len(d.Duplicate) != 0 || d.Rates[0].Accepted != 2 {
		t.Errorf("got %+v", d)
	}
	if d := s.service.Debug(2); len(d.Accepted) != 1 || len(d.Duplicate) != 1 {
		t.Errorf("got %+v", d)
	}
	s.clock.pass(time.Millisecond)
	s.expect(server, batch(item(uuid.NewString())), 1, 0)
	if d := s.service.Debug(1); len(d.Accepted) != 1 {
		t.Errorf("what came later: got %+v", d)
	}
}
