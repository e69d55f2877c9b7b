package credit

import (
	"slices"
	"time"
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
// rest. ErrClosed, ErrHoldAmount. What was pinned in grants that have expired
// meanwhile expires now: the second result.
func (a *Account) Capture(h *Hold, amount Amount, now time.Time) (Entry, []Entry, error) {
	switch {
	case h.State != HoldOpen:
		return Entry{}, nil, ErrClosed
	case amount < 0 || amount > h.Amount:
		return Entry{}, nil, ErrHoldAmount
	}
	left := amount
	for _, p := range h.parts() {
		used := min(left, p.Amount)
		p.Lot.Remaining -= used
		left -= used
	}
	h.Captured = amount
	e := a.post(Capture, amount, -amount, now)
	return e, a.end(h, HoldCaptured, now), nil
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
	return a.end(h, HoldReleased, now), nil
}

// end closes a hold, and does with what is free again what time would have
// done.
func (a *Account) end(h *Hold, state HoldState, now time.Time) []Entry {
	a.unhold(h, state, now)
	a.cover()
	entries := a.expire(now)
	a.dueLots()
	return entries
}

// unhold closes a hold.
func (a *Account) unhold(h *Hold, state HoldState, now time.Time) {
	for _, p := range h.Pins {
		p.Lot.Pinned -= p.Amount
	}
	a.Held -= h.Amount
	h.State, h.ClosedAt = state, a.at(now)
}
