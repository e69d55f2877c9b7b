// Package dedup decides whether an item is new. It is pure: the claims known
// so far and the time come in, a verdict comes out. It never reads a clock and
// never stores anything.
//
// Invariants:
//   - an identity is claimed by its first acceptance; repeats within the
//     window change nothing and do not extend it;
//   - the window is inclusive at its end and judged by receipt times only;
//   - a claim that lies in the future (a clock that went back) is a claim.
package dedup

import "github.com/actionpulse/actionpulse/internal/record"

// Claim says that an identity was accepted before.
type Claim struct {
	// Received is the receipt time of the first acceptance, in milliseconds
	// since 1970.
	Received int64
	// Fingerprint is that of the item accepted first.
	Fingerprint uint32
}

// Verdict is what becomes of an item.
type Verdict uint8

// The verdicts.
const (
	// New: not seen within the window; store it and claim its identity.
	New Verdict = iota
	// Duplicate: seen within the window with the same fingerprint.
	Duplicate
	// Conflict: seen within the window, but the item was another one. It is a
	// duplicate all the same: the first write wins.
	Conflict
)

// Decide judges an item received at now against the newest claim of its
// identity. All times are in milliseconds.
func Decide(claim Claim, now, window int64, fingerprint uint32) Verdict {
	switch {
	case now-claim.Received > window:
		return New
	case claim.Fingerprint != fingerprint:
		return Conflict
	default:
		return Duplicate
	}
}

// Finder finds the newest claim of an identity among everything decided
// before the group, committed or not.
type Finder interface {
	FindClaim(id record.Identity) (Claim, bool, error)
}

// Group decides the items of one group commit. All of them share one receipt
// time. It is used by one goroutine and reused from group to group.
type Group struct {
	finder Finder
	now    int64
	window int64
	claims map[record.Identity]Claim
}

// NewGroup returns a Group that looks claims up with finder.
func NewGroup(finder Finder) *Group {
	return &Group{finder: finder, claims: map[record.Identity]Claim{}}
}

// Begin forgets the last group and starts one at a receipt time.
func (g *Group) Begin(now, window int64) {
	g.now, g.window = now, window
	clear(g.claims)
}

// Decide judges one item and, if it is New, claims its identity for the rest
// of the group. It fails only if the finder does.
func (g *Group) Decide(id record.Identity, fingerprint uint32) (Verdict, error) {
	if claim, ok := g.claims[id]; ok {
		return Decide(claim, g.now, g.window, fingerprint), nil
	}
	claim, ok, err := g.finder.FindClaim(id)
	if err != nil {
		return New, err
	}
	if ok {
		if v := Decide(claim, g.now, g.window, fingerprint); v != New {
			return v, nil
		}
	}
	g.claims[id] = Claim{Received: g.now, Fingerprint: fingerprint}
	return New, nil
}

// Undo takes back the claim of an item that this group has judged New: it will
// not be accepted after all, and the next of its identity is judged as if it had
// never come.
func (g *Group) Undo(id record.Identity) { delete(g.claims, id) }
