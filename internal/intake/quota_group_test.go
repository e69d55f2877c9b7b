package intake

import (
	"errors"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/record"
)

// shelf is a set of claims; looking up broken fails.
type shelf struct{ broken record.EventID }

var errShelf = errors.New("disk")

func (s *shelf) FindClaim(id record.Identity) (dedup.Claim, bool, error) {
	if s.broken != (record.EventID{}) && id.EventID == s.broken {
		return dedup.Claim{}, false, errShelf
	}
	return dedup.Claim{}, false, nil
}

// request is one with an item for each id; 0 is none.
func request(plan string, ids ...byte) *submission {
	src := Source{Project: 1, KeyKind: record.KeyServer, Organization: "o", Plan: plan}
	sub := &submission{header: header(src, record.Clock{}), charge: src.charge()}
	for _, id := range ids {
		sub.items = append(sub.items, intakestore.Item{EventID: record.EventID{id}, Claimed: id != 0, Encoded: []byte("item")})
	}
	return sub
}

// TestNeighboursOfARefusedRequest: in one group, each is judged as if those that
// were refused before it had never come.
func TestNeighboursOfARefusedRequest(t *testing.T) {
	const n, d = dedup.New, dedup.Duplicate
	for name, c := range map[string]struct {
		subs []*submission
		// verdicts are those of the requests that are taken; nil is a refusal.
		verdicts [][]dedup.Verdict
		events   int64
	}{
		"both refused by themselves": {
			[]*submission{request("full", 1), request("full", 1)}, [][]dedup.Verdict{nil, nil}, 2,
		},
		"the same id under a plan with room is new": {
			[]*submission{request("full", 1, 2), request("paid", 1), request("full", 1), request("full", 2)},
			[][]dedup.Verdict{nil, {n}, {d}, nil},
			3,
		},
		"a repeat of what is in the group costs nothing": {
			[]*submission{request("paid", 1), request("full", 1, 1), request("full", 1, 2), request("paid", 2)},
			[][]dedup.Verdict{{n}, {d, d}, nil, {n}},
			4,
		},
		"an id twice in a refused request": {
			[]*submission{request("full", 1, 1, 0), request("paid", 1, 1)}, [][]dedup.Verdict{nil, {n, d}}, 3,
		},
		"the last of it": {
			[]*submission{request("three", 1, 2), request("three", 1), request("three", 3)},
			[][]dedup.Verdict{{n, n}, {d}, nil},
			4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, meter := metered(&shelf{})
			entries, fresh, err := q.judgeAll(&group{subs: c.subs}, 1_780_000_000_000)
			if err != nil {
				t.Fatal(err)
			}
			written := int64(0)
			for i, s := range c.subs {
				if refused := fault.CodeOf(s.err) == api.CodeQuotaExceeded; s.err != nil && !refused || refused != (c.verdicts[i] == nil) {
					t.Errorf("request %d: %v", i, s.err)
				}
				for j, want := range c.verdicts[i] {
					if s.verdicts[j] != want {
						t.Errorf("request %d, item %d: %v", i, j, s.verdicts[j])
					}
				}
			}
			for i := range entries {
				written += int64(len(entries[i].Items))
				if fresh[i].err != nil {
					t.Error("a refused request is written")
				}
			}
			if u, _ := meter.Usage(202605, []uint32{1}); u[0].Events != c.events || written+2 != c.events {
				t.Errorf("%+v counted, %d written", u, written)
			}
		})
	}
}

// TestAGroupThatIsNotWrittenCountsNothing: a claim could not be read, after
// requests of the group had been admitted.
func TestAGroupThatIsNotWrittenCountsNothing(t *testing.T) {
	q, meter := metered(&shelf{broken: record.EventID{9}})
	q.clock, q.guard = newWindowClock(fixed(1_780_000_000_000), 0), func() error { return nil }
	err := q.decide(&group{subs: []*submission{request("paid", 1, 2), request("full", 3), request("paid", 4, 9)}})
	if fault.CodeOf(err) != api.CodeInternal || !errors.Is(err, errShelf) {
		t.Fatalf("got %v", err)
	}
	if u, _ := meter.Usage(202605, []uint32{1}); u[0] != (quota.Usage{Events: 2}) {
		t.Errorf("%+v counted", u)
	}
}

// fixed is a clock that stands.
type fixed int64

func (c fixed) Wall() time.Time      { return time.UnixMilli(int64(c)) }
func (fixed) Elapsed() time.Duration { return time.Hour }

// metered is a sequencer without a store. Two events have been counted.
func metered(claims dedup.Finder) (*sequencer, *quota.Meter) {
	meter := quota.NewMeter(quota.NewPlans([]quota.Plan{{Name: "full", Events: 2}, {Name: "three", Events: 3}, {Name: "paid"}}, ""), 202605)
	meter.Count(quota.Addition{Organization: "o", Project: 1, At: 1_780_000_000_000, Events: 2})
	return &sequencer{quota: meter, decider: dedup.NewGroup(claims), window: time.Hour.Milliseconds(), observer: nobody{}}, meter
}
