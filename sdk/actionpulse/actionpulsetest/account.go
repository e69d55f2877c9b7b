package actionpulsetest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// account is one customer's balance of one credit type: what is posted is the
// sum of its movements, and what is available the rest of it beyond the holds.
type account struct {
	customer, creditType string
	// negative says that available may go below zero.
	negative     bool
	posted, held amount
	// updatedAt is when it changed last: movements are never dated before it.
	updatedAt time.Time
	// lots are topups that expire or have a priority of their own, with something
	// left. The rest of what is posted is the base.
	lots []*lot
}

// lot is what is left of a topup.
type lot struct {
	number                     int64
	movement                   string
	priority                   int
	granted, remaining, pinned amount
	expiresAt, createdAt       time.Time
}

// pin is the part of a lot that a hold has set aside.
type pin struct {
	lot    *lot
	amount amount
}

var (
	errInsufficient = errors.New("not enough credits are available")
	errRange        = errors.New("the balance would leave the range of amounts")
)

func (a *account) available() amount { return a.posted - a.held }

func (l *lot) free() amount { return l.remaining - l.pinned }

func (a *account) wire() api.Balance {
	return api.Balance{Posted: a.posted.String(), Held: a.held.String(), Available: a.available().String()}
}

// refusal is what the caller hears of an error of the account.
func (a *account) refusal(err error) error {
	if errors.Is(err, errInsufficient) {
		return refuse(api.CodeInsufficientCredits, err.Error()).with("credit_type", a.creditType).with("balance", a.wire())
	}
	return invalidRequest("amount", "would take the balance out of its range")
}

// at is when a movement of now is dated.
func (a *account) at(now time.Time) time.Time {
	if now.Before(a.updatedAt) {
		return a.updatedAt
	}
	return now
}

// post changes what is posted.
func (a *account) post(delta amount, now time.Time) {
	a.posted += delta
	a.updatedAt = a.at(now)
}

// canTake says why an amount cannot be taken, or set aside, now.
func (a *account) canTake(n amount) error {
	switch {
	case !a.negative && a.available() < n:
		return errInsufficient
	case !(a.available() - n).inRange():
		return errRange
	default:
		return nil
	}
}

// spend takes an amount off, in the order of priority, expiry and age.
func (a *account) spend(n amount, now time.Time) error {
	if err := a.canTake(n); err != nil {
		return err
	}
	a.use(n)
	a.post(-n, now)
	return nil
}

// use takes an amount from the lots, as far as it is not the base's to pay.
func (a *account) use(n amount) {
	for _, p := range a.take(n) {
		p.lot.remaining -= p.amount
	}
}

// add gives an amount to the base.
func (a *account) add(n amount, now time.Time) error {
	if !(a.posted + n).inRange() {
		return errRange
	}
	a.post(n, now)
	return nil
}

// topup adds credits. What is owed is paid first; the rest is a lot of its own
// unless it is like the base.
func (a *account) topup(n amount, l *lot, now time.Time) error {
	left := n + min(a.base().free(), 0)
	if err := a.add(n, now); err != nil {
		return err
	}
	if left > 0 && (l.priority != defaultPriority || !l.expiresAt.IsZero()) {
		l.granted, l.remaining, l.createdAt = left, left, a.updatedAt
		a.lots = append(a.lots, l)
	}
	return nil
}

// base is what is posted beyond the lots, as a lot.
func (a *account) base() *lot {
	b := &lot{priority: defaultPriority, remaining: a.posted, pinned: a.held}
	for _, l := range a.lots {
		b.remaining -= l.remaining
		b.pinned -= l.pinned
	}
	return b
}

// take says from which lots an amount would be taken; the rest is of the base.
func (a *account) take(n amount) []pin {
	base := a.base()
	order := append(slices.Clone(a.lots), base)
	slices.SortStableFunc(order, burnsBefore)
	var parts []pin
	for _, l := range order {
		part := min(n, max(l.free(), 0))
		if part > 0 && l != base {
			parts = append(parts, pin{l, part})
		}
		n -= part
	}
	return parts
}

// cover pays what the base owes from what is free in the lots.
func (a *account) cover() {
	if owed := -a.base().free(); owed > 0 {
		a.use(owed)
	}
}

// burnsBefore orders lots: the lower priority first, then what expires sooner,
// then what is older. The base, which has no age, is older than its like.
func burnsBefore(x, y *lot) int {
	if c := cmp.Compare(x.priority, y.priority); c != 0 {
		return c
	}
	if x.expiresAt.IsZero() != y.expiresAt.IsZero() {
		if x.expiresAt.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(x.expiresAt.Compare(y.expiresAt), x.createdAt.Compare(y.createdAt), cmp.Compare(x.number, y.number))
}

// expire takes off what is left of expired lots and not held, and returns what
// it was, in the order of expiry.
func (a *account) expire(now time.Time) []amount {
	var gone []amount
	order := slices.Clone(a.lots)
	slices.SortStableFunc(order, func(x, y *lot) int { return cmp.Or(x.expiresAt.Compare(y.expiresAt), burnsBefore(x, y)) })
	for _, l := range order {
		if n := l.free(); n > 0 && past(l.expiresAt, now) {
			l.remaining -= n
			a.post(-n, now)
			gone = append(gone, n)
		}
	}
	return gone
}

// place sets an amount aside.
func (a *account) place(n amount) ([]pin, error) {
	if err := a.canTake(n); err != nil {
		return nil, err
	}
	if !(a.held + n).inRange() {
		return nil, errRange
	}
	pins := a.take(n)
	for _, p := range pins {
		p.lot.pinned += p.amount
	}
	a.held += n
	return pins, nil
}

// unhold lets go what was set aside.
func (a *account) unhold(n amount, pins []pin) {
	for _, p := range pins {
		p.lot.pinned -= p.amount
	}
	a.held -= n
	a.cover()
}

// capture uses a part of what was set aside; it is to be let go next.
func (a *account) capture(used, held amount, pins []pin, now time.Time) {
	base := pin{&lot{priority: defaultPriority}, held}
	for _, p := range pins {
		base.amount -= p.amount
	}
	parts := append(slices.Clone(pins), base)
	slices.SortStableFunc(parts, func(x, y pin) int { return burnsBefore(x.lot, y.lot) })
	left := used
	for _, p := range parts {
		n := min(left, p.amount)
		p.lot.remaining -= n
		left -= n
	}
	a.post(-used, now)
}

// takeBack takes an amount off, first what is left and not held of the lot that
// a topup has made.
func (a *account) takeBack(topup string, n amount, now time.Time) error {
	if err := a.canTake(n); err != nil {
		return err
	}
	own := amount(0)
	for _, l := range a.lots {
		if l.movement == topup {
			own = min(n, l.free())
			l.remaining -= own
		}
	}
	a.posted -= own
	a.use(n - own)
	a.posted += own
	a.post(-n, now)
	return nil
}
