package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

func (b *bundle) state(t *testing.T, p record.Person, position uint64) eventstore.ErasureState {
	t.Helper()
	state, err := b.stores.Events.ErasureState(t.Context(), 1, p, position)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// An erased event does not come back by a repeat, also after a repair that had
// nothing but the rows to go by; verify finds a claim that is really missing.
func TestErasedEventsDoNotComeBack(t *testing.T) {
	b := setup(t, t.TempDir())
	defer b.close(t)
	b.send(t, 1, 2, 3)
	b.store(t, 10)
	b.erase(t, personOf(1))
	b.send(t, 5)
	b.store(t, 10)
	if _, err := b.stores.Rebuild(t.Context(), window); err != nil {
		t.Fatal(err)
	}
	b.group = dedup.NewGroup(b.stores.Intake)
	b.now += window
	b.send(t, 1, 2, 3, 5)
	b.store(t, 10)
	if r := b.verify(t); !r.OK || r.Rows != 2 || r.LastPosition != 5 || r.Claims != 4 {
		t.Fatalf("got %+v", r)
	}
	_, err := b.stores.Intake.Rebuild(b.stores.Intake.State(), func(func(record.Identity, dedup.Claim) error) error {
		return nil // as if the claims of what was erased had been forgotten
	})
	if err != nil {
		t.Fatal(err)
	}
	b.group = dedup.NewGroup(b.stores.Intake)
	b.send(t, 1)
	b.store(t, 10)
	if r := b.verify(t); r.OK || !strings.Contains(strings.Join(r.Differences, "\n"), "stored twice within the window: positions 1 and 6") {
		t.Fatalf("an erased event that came back was not found: %+v", r)
	}
}

// A repair that replaces the intake store gives an erasure up with the other
// waiting records. Its position is assigned anew: only the event store's word
// tells that this person was not erased.
func TestAnErasureThatWasLostIsMissing(t *testing.T) {
	b := setup(t, t.TempDir())
	defer b.close(t)
	b.send(t, 1, 2)
	b.store(t, 10)
	position := b.erase(t, personOf(1))
	if got := b.state(t, personOf(1), position); got != eventstore.ErasureWaiting {
		t.Fatalf("state %v before it was applied", got)
	}
	b.loseIntake(t)
	if got := b.erase(t, personOf(2)); got != position {
		t.Fatalf("position %d, want %d again", got, position)
	}
	b.store(t, 10)
	if got := b.state(t, personOf(1), position); got != eventstore.ErasureMissing {
		t.Errorf("state %v, but another person was erased there", got)
	}
	if got := b.state(t, personOf(2), position); got != eventstore.ErasureApplied {
		t.Errorf("state %v", got)
	}
	again := b.erase(t, personOf(1))
	b.store(t, 10)
	if got := b.state(t, personOf(1), again); got != eventstore.ErasureApplied {
		t.Errorf("state %v after it was asked for again", got)
	}
	if r := b.verify(t); !r.OK || r.Rows != 0 {
		t.Errorf("got %+v", r)
	}
}

// loseIntake puts a new intake store in the place of the old one, as repair
// does.
func (b *bundle) loseIntake(t *testing.T) {
	t.Helper()
	mark, err := b.stores.Events.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.close(t)
	if err := os.RemoveAll(filepath.Join(b.dir, "intake")); err != nil {
		t.Fatal(err)
	}
	state := intakestore.State{Last: mark.Position, Received: mark.Received, Window: window}
	if err := intakestore.Create(options(b.dir), identity, state); err != nil {
		t.Fatal(err)
	}
	b.open(t)
	if _, err := b.stores.Rebuild(t.Context(), window); err != nil {
		t.Fatal(err)
	}
	b.group = dedup.NewGroup(b.stores.Intake)
}
