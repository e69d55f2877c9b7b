package credit

import (
	"cmp"
	"slices"
	"time"
)

// Lot is what is left of a grant.
type Lot struct {
	// Number is given by the store; 0 for a new lot.
	Number    int64
	Priority  int
	ExpiresAt time.Time // zero: never
	CreatedAt time.Time
	// Granted is what it began with, Remaining what has not been used, Pinned
	// the part of that which is held.
	Granted, Remaining, Pinned Amount
	// Movement is the id of the topup that granted it.
	Movement string
}

// The priorities of grants: what is lower is used first.
const (
	MinPriority     = 0
	MaxPriority     = 100
	DefaultPriority = 50
)

// Pin is the part of a hold that is taken from a lot.
type Pin struct {
	Lot    *Lot
	Amount Amount
}

// free is what is left and not held.
func (l *Lot) free() Amount { return l.Remaining - l.Pinned }

// base is what is posted beyond the lots, as a lot. It is older than its like,
// and in debt (its free part negative) where credits are owed.
func (a *Account) base() *Lot {
	b := &Lot{Priority: DefaultPriority, Remaining: a.Posted, Pinned: a.Held}
	for _, l := range a.Lots {
		b.Remaining -= l.Remaining
		b.Pinned -= l.Pinned
	}
	return b
}

// take says from which lots an amount would be taken now; the rest is of the
// base. It changes nothing.
func (a *Account) take(amount Amount) []Pin {
	if len(a.Lots) == 0 {
		return nil
	}
	base := a.base()
	order := append(slices.Clone(a.Lots), base)
	slices.SortStableFunc(order, burnsBefore)
	var parts []Pin
	for _, l := range order {
		part := min(amount, max(l.free(), 0))
		if part > 0 && l != base {
			parts = append(parts, Pin{Lot: l, Amount: part})
		}
		amount -= part
	}
	return parts
}

// cover pays what the base owes from what is free in the lots. A balance that
// may be negative can get there when a hold ends: what it had set aside of a
// grant is free again, and credits that were used meanwhile are owed. So, as
// long as anything is owed, nothing is free in a lot, and what expires is
// never more than is available.
func (a *Account) cover() {
	if owed := -a.base().free(); owed > 0 {
		for _, part := range a.take(owed) {
			part.Lot.Remaining -= part.Amount
		}
	}
}

// expire takes off what is left of expired lots and is not held, in the order
// in which they have expired.
func (a *Account) expire(now time.Time) []Entry {
	var expired []*Lot
	for _, l := range a.Lots {
		if l.free() > 0 && past(l.ExpiresAt, now) {
			expired = append(expired, l)
		}
	}
	slices.SortStableFunc(expired, func(x, y *Lot) int {
		return cmp.Or(x.ExpiresAt.Compare(y.ExpiresAt), burnsBefore(x, y))
	})
	var entries []Entry
	for _, l := range expired {
		gone := l.free()
		l.Remaining -= gone
		e := a.post(Expiry, gone, -gone, now)
		e.Lot = l
		entries = append(entries, e)
	}
	return entries
}

// burnsBefore orders lots: the lower priority first, then what expires sooner,
// then what is older. The base, which has no age, is older than its like; a
// lot that the store does not know yet is younger.
func burnsBefore(x, y *Lot) int {
	return cmp.Or(
		cmp.Compare(x.Priority, y.Priority),
		compareEnds(x.ExpiresAt, y.ExpiresAt),
		x.CreatedAt.Compare(y.CreatedAt),
		compareNumbers(x.Number, y.Number),
	)
}

// compareEnds orders times of which the zero time is the last.
func compareEnds(x, y time.Time) int {
	if x.IsZero() || y.IsZero() {
		return cmp.Compare(rank(x.IsZero()), rank(y.IsZero()))
	}
	return x.Compare(y)
}

// compareNumbers orders numbers of which 0 is the last.
func compareNumbers(x, y int64) int {
	if x == 0 || y == 0 {
		return cmp.Compare(rank(x == 0), rank(y == 0))
	}
	return cmp.Compare(x, y)
}

// rank puts what is not so before what is.
func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}
