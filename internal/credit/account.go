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
	a.cover()
	entries := a.expire(now)
	a.NextDue = a.NextHold
	for _, h := range a.Due {
		if h.State == HoldOpen {
			a.due(h.ExpiresAt)
		}
	}
	a.dueLots()
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

// dueLots notes when what is free in lots expires.
func (a *Account) dueLots() {
	for _, l := range a.Lots {
		if l.free() > 0 {
			a.due(l.ExpiresAt)
		}
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
	left := amount + min(a.base().free(), 0)
	e := a.post(Topup, amount, amount, now)
	if left <= 0 || g.Priority == DefaultPriority && g.ExpiresAt.IsZero() {
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
	if !(a.Available() - amount).inRange() {
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
