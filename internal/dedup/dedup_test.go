package dedup_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

const window = int64(48 * time.Hour / time.Millisecond)

func TestWindowIsInclusiveAtItsEnd(t *testing.T) {
	claim := dedup.Claim{Received: 1000, Fingerprint: 7}
	tests := []struct {
		now         int64
		fingerprint uint32
		want        dedup.Verdict
	}{
		{1000, 7, dedup.Duplicate},
		{1000 + window, 7, dedup.Duplicate},
		{1000 + window, 8, dedup.Conflict},
		{1000 + window + 1, 7, dedup.New},
		{1000 + window + 1, 8, dedup.New},
		{0, 7, dedup.Duplicate}, // a claim from the future
	}
	for _, tt := range tests {
		if got := dedup.Decide(claim, tt.now, window, tt.fingerprint); got != tt.want {
			t.Errorf("at %d, fingerprint %d: got %d, want %d", tt.now, tt.fingerprint, got, tt.want)
		}
	}
}

// claims is a set in memory; err makes every look-up fail.
type claims struct {
	known map[record.Identity]dedup.Claim
	err   error
}

func (c *claims) FindClaim(id record.Identity) (dedup.Claim, bool, error) {
	claim, ok := c.known[id]
	return claim, ok, c.err
}

func TestAFailedLookUpIsNoVerdict(t *testing.T) {
	broken := errors.New("disk")
	g := dedup.NewGroup(&claims{err: broken})
	g.Begin(0, window)
	if _, err := g.Decide(record.Identity{}, 0); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}

// A group that was not committed must leave nothing behind: its items are new
// again in the next one.
func TestADiscardedGroupClaimsNothing(t *testing.T) {
	g := dedup.NewGroup(&claims{})
	id := record.Identity{Project: 1}
	for range 2 {
		g.Begin(5, window)
		for i, want := range []dedup.Verdict{dedup.New, dedup.Duplicate, dedup.Conflict} {
			if got, err := g.Decide(id, uint32(i/2)); got != want || err != nil {
				t.Fatalf("step %d: got %d %v, want %d", i, got, err, want)
			}
		}
	}
}

// TestAgainstAModel sends identities at times that only grow, in groups that
// are sometimes lost, and compares every verdict with a plain map.
func TestAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := &claims{known: map[record.Identity]dedup.Claim{}}
		model := map[record.Identity]dedup.Claim{}
		g := dedup.NewGroup(store)
		now := int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "groups") {
			now += rapid.SampledFrom([]int64{0, 1, window / 3, window, window + 1}).Draw(t, "step")
			g.Begin(now, window)
			decided := map[record.Identity]dedup.Claim{}
			for range rapid.IntRange(1, 6).Draw(t, "items") {
				id := record.Identity{
					Project: rapid.Uint32Range(1, 2).Draw(t, "project"),
					KeyKind: record.KeyKind(rapid.IntRange(1, 2).Draw(t, "kind")),
					EventID: record.EventID{byte(rapid.IntRange(1, 3).Draw(t, "id"))},
				}
				fingerprint := rapid.Uint32Range(0, 1).Draw(t, "fingerprint")
				claim, known := decided[id]
				if !known {
					claim, known = model[id]
				}
				want := dedup.New
				if known && now-claim.Received <= window {
					want = dedup.Duplicate
					if claim.Fingerprint != fingerprint {
						want = dedup.Conflict
					}
				}
				got, err := g.Decide(id, fingerprint)
				if err != nil || got != want {
					t.Fatalf("%+v at %d: got %d %v, want %d", id, now, got, err, want)
				}
				if got == dedup.New {
					decided[id] = dedup.Claim{Received: now, Fingerprint: fingerprint}
				}
			}
			if rapid.Bool().Draw(t, "lost") {
				continue
			}
			for id, claim := range decided {
				model[id], store.known[id] = claim, claim
			}
		}
	})
}
