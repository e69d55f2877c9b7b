// Package credit owns customers' credits: balances, the ledger of movements,
// grants that expire and holds. What happens to one balance is decided by
// [Account], which is pure: state and time in, entries out.
//
// Invariants:
//   - a balance is the sum of its entries, at every moment; entries are only
//     added;
//   - available = posted − held; no request takes it below zero unless the
//     credit type allows that, and what time does takes only what is not held;
//   - an amount is an integer of micro-units; nothing is ever rounded;
//   - a key names one movement, for ever; a movement that was refused leaves
//     its key free.
//
// It never reads a header and never decides who may call it.
package credit

import (
	"errors"
	"slices"
	"time"
)

// Kind says what a movement is.
type Kind string

// The kinds. The first three are asked for with a key, the next two name
// another resource, and the last is what time does.
const (
	Topup    Kind = "topup"
	Charge   Kind = "charge"
	Adjust   Kind = "adjust"
	Capture  Kind = "capture"
	Reversal Kind = "reversal"
	Expiry   Kind = "expiry"
)

// Account is one customer's balance of one credit type, with what its
// decisions depend on. The zero Account is an empty balance.
type Account struct {
	// AllowNegative says that available may go below zero.
	AllowNegative bool
	Posted, Held  Amount
	// UpdatedAt is the time of the latest entry; entries are never dated
	// before it.
	UpdatedAt time.Time
	// Lots are the grants with something left, in any order. What is posted
	// beyond them is the base: it has DefaultPriority and does not expire.
	Lots []*Lot
	// Due are the open holds whose time has come; others need not be there.
	Due []*Hold
	// NextHold is when the first open hold expires that is not in Due.
	NextHold time.Time
	// NextDue is a time before which time does nothing to this account; zero if
	// it never will. Due and NextHold matter only when it has come.
	NextDue time.Time
}

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

// Hold is an amount that is set aside for a while.
type Hold struct {
	// Number is given by the store; 0 for a new hold.
	Number int64
	// ID is the caller's own.
	ID        string
	Amount    Amount
	Captured  Amount
	State     HoldState
	ExpiresAt time.Time // zero: never
	CreatedAt time.Time
	ClosedAt  time.Time // zero while open
	// Pins say which lots it is taken from; the rest is of the base.
	Pins []Pin
}

// HoldState says what became of a hold.
type HoldState string

// The states: an open hold ends in one of the others, and that is for good.
const (
	HoldOpen     HoldState = "open"
	HoldCaptured HoldState = "captured"
	HoldReleased HoldState = "released"
	HoldExpired  HoldState = "expired"
)

// Pin is the part of a hold that is taken from a lot.
type Pin struct {
	Lot    *Lot
	Amount Amount
}

// Entry is a change to what is posted.
type Entry struct {
	Kind Kind
	// Amount is as it was asked for; Delta is its effect on what is posted.
	Amount, Delta Amount
	// BalanceAfter is what is posted after it.
	BalanceAfter Amount
	At           time.Time
	// Lot is the lot that a topup has granted or that has expired, if any.
	Lot *Lot
}

// The refusals of an account. Nothing has changed when one is returned.
var (
	// ErrInsufficient: available would go below zero.
	ErrInsufficient = errors.New("not enough credits are available")
	// ErrRange: a balance would have more than 12 digits before the point.
	ErrRange = errors.New("the balance would leave the range of amounts")
	// ErrClosed: the hold is not open any more.
	ErrClosed = errors.New("the hold is closed")
	// ErrHoldAmount: more would be captured than is held.
	ErrHoldAmount = errors.New("more than what is held")
)

// Available is what can be used.
func (a *Account) Available() Amount { return a.Posted - a.Held }

// lots is the sum of what is left of the grants and of what is pinned in them.
func (a *Account) lots() (remaining, pinned Amount) {
	for _, l := range a.Lots {
		remaining += l.Remaining
		pinned += l.Pinned
	}
	return remaining, pinned
}

// at is when an entry of now is dated: time does not run backwards in a
// ledger.
func (a *Account) at(now time.Time) time.Time {
	if now.Before(a.UpdatedAt) {
		return a.UpdatedAt
	}
	return now
}

// post changes what is posted.
func (a *Account) post(kind Kind, amount, delta Amount, now time.Time) Entry {
	a.Posted += delta
	a.UpdatedAt = a.at(now)
	return Entry{Kind: kind, Amount: amount, Delta: delta, BalanceAfter: a.Posted, At: a.UpdatedAt}
}

// Settle does what time has done by now: holds expire, and then what is left
// of expired grants and is not held. It must be called before anything else is
// decided, with Due and NextHold filled in if NextDue has come. It returns the
// entries, and changes the holds in Due.
func (a *Account) Settle(now time.Time) []Entry {
	if !past(a.NextDue, now) {
		return nil
	}
	for _, h := range a.Due {
		if h.State == HoldOpen && past(h.ExpiresAt, now) {
			a.unhold(h, HoldExpired, now)
		}
	}
	entries := a.expire(now)
	a.NextDue = a.NextHold
	for _, l := range a.Lots {
		if l.Remaining > l.Pinned {
			a.due(l.ExpiresAt)
		}
	}
	return entries
}

// expire takes off what is left of expired lots and is not held.
func (a *Account) expire(now time.Time) []Entry {
	var entries []Entry
	for _, l := range a.Lots {
		if gone := l.Remaining - l.Pinned; gone > 0 && past(l.ExpiresAt, now) {
			l.Remaining -= gone
			e := a.post(Expiry, gone, -gone, now)
			e.Lot = l
			entries = append(entries, e)
		}
	}
	return entries
}

// past says whether t is a time and has come.
func past(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// due notes that time does something at t.
func (a *Account) due(t time.Time) {
	if !t.IsZero() && (a.NextDue.IsZero() || t.Before(a.NextDue)) {
		a.NextDue = t
	}
}

// Grant says how a topup may be used.
type Grant struct {
	// Priority is from MinPriority to MaxPriority.
	Priority  int
	ExpiresAt time.Time // zero: never
	Movement  string
}

// Topup adds credits. What is owed is paid first; the rest is a lot of its
// own unless it is like the base. ErrRange.
func (a *Account) Topup(amount Amount, g Grant, now time.Time) (Entry, error) {
	if !(a.Posted + amount).inRange() {
		return Entry{}, ErrRange
	}
	remaining, _ := a.lots()
	base := a.Posted - remaining
	e := a.post(Topup, amount, amount, now)
	if g.Priority == DefaultPriority && g.ExpiresAt.IsZero() {
		return e, nil
	}
	left := amount + min(base, 0)
	if left <= 0 {
		return e, nil
	}
	e.Lot = &Lot{Priority: g.Priority, ExpiresAt: g.ExpiresAt, CreatedAt: e.At, Granted: left, Remaining: left, Movement: g.Movement}
	a.Lots = append(a.Lots, e.Lot)
	a.due(g.ExpiresAt)
	return e, nil
}

// Spend takes credits off, for a kind of movement: from the lots and the base
// in the order of priority, expiry and age. ErrInsufficient, ErrRange.
func (a *Account) Spend(kind Kind, amount, asked Amount, now time.Time) (Entry, error) {
	if !a.AllowNegative && a.Available() < amount {
		return Entry{}, ErrInsufficient
	}
	if !(a.Posted - amount).inRange() {
		return Entry{}, ErrRange
	}
	for _, part := range a.take(amount) {
		part.Lot.Remaining -= part.Amount
	}
	return a.post(kind, asked, -amount, now), nil
}

// Add gives credits to the base, for a kind of movement. ErrRange.
func (a *Account) Add(kind Kind, amount, asked Amount, now time.Time) (Entry, error) {
	if !(a.Posted + amount).inRange() {
		return Entry{}, ErrRange
	}
	return a.post(kind, asked, amount, now), nil
}

// take says from which lots an amount would be taken now; the rest is of the
// base. It changes nothing.
func (a *Account) take(amount Amount) []Pin {
	if len(a.Lots) == 0 {
		return nil
	}
	remaining, pinned := a.lots()
	base := &Lot{Priority: DefaultPriority, Remaining: a.Posted - remaining, Pinned: a.Held - pinned}
	order := append(slices.Clone(a.Lots), base)
	slices.SortStableFunc(order, burnsBefore)
	var parts []Pin
	for _, l := range order {
		part := min(amount, max(l.Remaining-l.Pinned, 0))
		if part > 0 && l != base {
			parts = append(parts, Pin{Lot: l, Amount: part})
		}
		amount -= part
	}
	return parts
}

// burnsBefore orders lots: the lower priority first, then what expires sooner,
// then what is older. The base, which has no age, is older than its like.
func burnsBefore(x, y *Lot) int {
	if x.Priority != y.Priority {
		return x.Priority - y.Priority
	}
	if x.ExpiresAt.IsZero() != y.ExpiresAt.IsZero() {
		if y.ExpiresAt.IsZero() {
			return -1
		}
		return 1
	}
	if c := x.ExpiresAt.Compare(y.ExpiresAt); c != 0 {
		return c
	}
	if c := x.CreatedAt.Compare(y.CreatedAt); c != 0 {
		return c
	}
	return int(min(max(x.Number-y.Number, -1), 1))
}

// Place sets an amount aside. ErrInsufficient, ErrRange.
func (a *Account) Place(h *Hold, now time.Time) error {
	if !a.AllowNegative && a.Available() < h.Amount {
		return ErrInsufficient
	}
	if !(a.Held + h.Amount).inRange() || !(a.Available() - h.Amount).inRange() {
		return ErrRange
	}
	h.Pins = a.take(h.Amount)
	for _, p := range h.Pins {
		p.Lot.Pinned += p.Amount
	}
	a.Held += h.Amount
	h.State, h.CreatedAt = HoldOpen, a.at(now)
	a.due(h.ExpiresAt)
	return nil
}

// Capture uses an amount of an open hold, which may be 0, and releases the
// rest. ErrClosed, ErrHoldAmount, ErrRange. What was pinned in grants that
// have expired meanwhile expires now: the second result.
func (a *Account) Capture(h *Hold, amount Amount, now time.Time) (Entry, []Entry, error) {
	switch {
	case h.State != HoldOpen:
		return Entry{}, nil, ErrClosed
	case amount > h.Amount:
		return Entry{}, nil, ErrHoldAmount
	case !(a.Posted - amount).inRange():
		return Entry{}, nil, ErrRange
	}
	left := amount
	for _, p := range h.parts() {
		used := min(left, p.Amount)
		p.Lot.Remaining -= used
		left -= used
	}
	h.Captured = amount
	a.unhold(h, HoldCaptured, now)
	e := a.post(Capture, amount, -amount, now)
	return e, a.expire(now), nil
}

// parts are the pins of a hold and what it holds of the base, in the order in
// which they are used.
func (h *Hold) parts() []Pin {
	base := Pin{Lot: &Lot{Priority: DefaultPriority}, Amount: h.Amount}
	for _, p := range h.Pins {
		base.Amount -= p.Amount
	}
	parts := append(slices.Clone(h.Pins), base)
	slices.SortStableFunc(parts, func(x, y Pin) int { return burnsBefore(x.Lot, y.Lot) })
	return parts
}

// Release lets an open hold go. ErrClosed. What was pinned in grants that have
// expired meanwhile expires now.
func (a *Account) Release(h *Hold, now time.Time) ([]Entry, error) {
	if h.State != HoldOpen {
		return nil, ErrClosed
	}
	a.unhold(h, HoldReleased, now)
	return a.expire(now), nil
}

// unhold closes a hold.
func (a *Account) unhold(h *Hold, state HoldState, now time.Time) {
	for _, p := range h.Pins {
		p.Lot.Pinned -= p.Amount
		a.due(p.Lot.ExpiresAt)
	}
	a.Held -= h.Amount
	h.State, h.ClosedAt = state, a.at(now)
}
