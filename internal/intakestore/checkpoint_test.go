package intakestore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// A copy made while groups are being written holds all that was acknowledged
// before, and opens as a store does.
func TestCheckpointHoldsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	dir := create(t)
	s := open(t, dir)
	r := rand.New(rand.NewPCG(1, 1))
	var before, after []record.EventID
	for range 200 {
		before, after = append(before, newID(r)), append(after, newID(r))
	}
	for i, id := range before {
		commit(t, s, group(int64(1000+i), id))
	}
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for i, id := range after {
			commit(t, s, group(int64(2000+i), id))
		}
	}()
	copied := filepath.Join(filepath.Dir(dir), "copy", "intake")
	acknowledged, err := s.Checkpoint(t.Context(), copied)
	if err != nil || acknowledged < uint64(len(before)) {
		t.Fatalf("acknowledged %d, want at least %d: %v", acknowledged, len(before), err)
	}
	<-writing
	closeStore(t, s)

	o := options(t, copied)
	if err := intakestore.WriteMark(o.Mark, acknowledged); err != nil {
		t.Fatal(err)
	}
	s, err = intakestore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if last := s.State().Last; last < acknowledged || last > uint64(len(before)+len(after)) {
		t.Errorf("it ends at position %d, and %d was acknowledged", last, acknowledged)
	}
	for i, id := range before {
		mustFind(t, s, id, dedup.Claim{Received: int64(1000 + i)})
	}
	records, err := s.Records(1, 1000)
	if err != nil || uint64(len(records)) != s.State().Last {
		t.Errorf("%d records, want %d: %v", len(records), s.State().Last, err)
	}
}

// Purge empties logs that a copy needs: no copy is begun while it works or
// waits, and it works once the copies under way are there.
func TestCheckpointsWaitForPurge(t *testing.T) {
	t.Parallel()
	dir := create(t)
	s := open(t, dir)
	defer func() { closeStore(t, s) }()
	commit(t, s, group(1000, newID(rand.New(rand.NewPCG(2, 2)))))
	view, err := s.Snapshot(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	purged := make(chan error, 1)
	go func() { purged <- s.Purge(context.Background()) }()
	waited := false
	for n := 0; n < 100 && !waited; n++ { // until Purge waits for the view
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := s.Checkpoint(ctx, filepath.Join(filepath.Dir(dir), strconv.Itoa(n)))
		cancel()
		if waited = errors.Is(err, context.DeadlineExceeded); err != nil && !waited {
			t.Fatal(err)
		}
	}
	if !waited {
		t.Error("a copy is made beside Purge")
	}
	if err := errors.Join(view.Close(), <-purged); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Checkpoint(t.Context(), filepath.Join(filepath.Dir(dir), "after")); err != nil {
		t.Fatal(err)
	}
}
