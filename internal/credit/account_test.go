package credit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
)

// start is when these tests begin; hour is an hour after it, and so on.
var start = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

func hour(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }

// ledger is an account of tests, which cannot fail by accident.
type ledger struct {
	t *testing.T
	credit.Account

	now     time.Time
	entries []credit.Entry
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	return &ledger{t: t, now: start}
}

func (l *ledger) note(err error, entries ...credit.Entry) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	l.entries = append(l.entries, entries...)
}

func (l *ledger) grant(name string, amount credit.Amount, priority int, expires time.Time) {
	l.t.Helper()
	e, err := l.Topup(amount, credit.Grant{Priority: priority, ExpiresAt: expires, Movement: name}, l.now)
	l.note(err, e)
}

func (l *ledger) base(amount credit.Amount) {
	l.t.Helper()
	l.grant("base", amount, credit.DefaultPriority, time.Time{})
}

func (l *ledger) charge(amount credit.Amount) {
	l.t.Helper()
	e, err := l.Spend(credit.Charge, amount, amount, l.now)
	l.note(err, e)
}

func (l *ledger) place(amount credit.Amount, expires time.Time) *credit.Hold {
	l.t.Helper()
	h := &credit.Hold{ID: "h", Amount: amount, ExpiresAt: expires}
	l.note(l.Place(h, l.now))
	return h
}

// wait lets time pass; due are the holds that are open.
func (l *ledger) wait(to time.Time, due ...*credit.Hold) {
	l.now, l.Due = to, due
	l.entries = append(l.entries, l.Settle(to)...)
	l.Due = nil
}

// want compares the account with a line like "10/3 a:5/1 b:2/0": posted/held,
// then what remains and is pinned of each lot that is not empty.
func (l *ledger) want(line string) {
	l.t.Helper()
	parts := []string{fmt.Sprintf("%d/%d", l.Posted, l.Held)}
	for _, lot := range l.Lots {
		if lot.Remaining != 0 {
			parts = append(parts, fmt.Sprintf("%s:%d/%d", lot.Movement, lot.Remaining, lot.Pinned))
		}
	}
	if got := strings.Join(parts, " "); got != line {
		l.t.Errorf("got %s, want %s", got, line)
	}
	var sum credit.Amount
	for _, e := range l.entries {
		if sum += e.Delta; e.BalanceAfter != sum {
			l.t.Errorf("after %s of %d the balance is said to be %d, it is %d", e.Kind, e.Delta, e.BalanceAfter, sum)
		}
	}
	if sum != l.Posted {
		l.t.Errorf("the entries sum to %d, posted is %d", sum, l.Posted)
	}
}

func TestBurnOrder(t *testing.T) {
	t.Parallel()
	never := time.Time{}
	for name, test := range map[string]struct {
		grants func(l *ledger)
		charge credit.Amount
		want   string
	}{
		"the lower priority first": {
			func(l *ledger) { l.grant("a", 5, 20, never); l.grant("b", 5, 10, never) }, 6, "4/0 a:4/0",
		},
		"priority goes before expiry": {
			func(l *ledger) { l.grant("a", 5, 20, hour(1)); l.grant("b", 5, 10, hour(9)) }, 5, "5/0 a:5/0",
		},
		"what expires sooner first": {
			func(l *ledger) { l.grant("a", 5, 50, hour(9)); l.grant("b", 5, 50, hour(1)) }, 6, "4/0 a:4/0",
		},
		"what expires goes before what does not": {
			func(l *ledger) { l.grant("a", 5, 20, never); l.grant("b", 5, 20, hour(9)) }, 5, "5/0 a:5/0",
		},
		"the older first": {
			func(l *ledger) {
				l.grant("a", 5, 20, hour(9))
				l.now = hour(1)
				l.grant("b", 5, 20, hour(9))
			}, 6, "4/0 b:4/0",
		},
		"of one moment, in their order": {
			func(l *ledger) { l.grant("a", 5, 20, hour(9)); l.grant("b", 5, 20, hour(9)) }, 6, "4/0 b:4/0",
		},
		"a lot that the store knows is older than one of the same moment that it does not": {
			func(l *ledger) {
				l.grant("new", 5, 20, hour(9))
				l.grant("old", 5, 20, hour(9))
				l.Lots[1].Number = 7
			}, 6, "4/0 new:4/0",
		},
		"the base after priority 49":         {func(l *ledger) { l.base(5); l.grant("a", 5, 49, never) }, 6, "4/0"},
		"the base before priority 51":        {func(l *ledger) { l.grant("a", 5, 51, never); l.base(5) }, 6, "4/0 a:4/0"},
		"the base after what expires at 50":  {func(l *ledger) { l.base(5); l.grant("a", 5, 50, hour(1)) }, 6, "4/0"},
		"the base before what expires at 51": {func(l *ledger) { l.base(5); l.grant("a", 5, 51, hour(1)) }, 6, "4/0 a:4/0"},
		"from three": {
			func(l *ledger) { l.grant("c", 5, 60, never); l.base(5); l.grant("a", 5, 0, never) }, 12, "3/0 c:3/0",
		},
		"everything": {func(l *ledger) { l.grant("c", 5, 60, never); l.base(5); l.grant("a", 5, 0, never) }, 15, "0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			test.grants(l)
			l.charge(test.charge)
			l.want(test.want)
		})
	}
}

func TestGrantsExpire(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.base(1)
	l.grant("b", 5, 50, hour(2))
	l.grant("a", 5, 50, hour(1))
	l.charge(2)
	l.wait(hour(1).Add(-time.Microsecond))
	l.want("9/0 b:5/0 a:3/0")
	l.wait(hour(1))
	l.want("6/0 b:5/0")
	if !l.NextDue.Equal(hour(2)) {
		t.Errorf("next due %v", l.NextDue)
	}
	l.wait(hour(9))
	l.want("1/0")
	if !l.NextDue.IsZero() {
		t.Errorf("next due %v", l.NextDue)
	}
	if e := l.entries[len(l.entries)-1]; e.Kind != credit.Expiry || e.Amount != 5 || e.Delta != -5 || e.Lot.Movement != "b" || !e.At.Equal(hour(9)) {
		t.Errorf("got %+v", e)
	}
}

// Grants that have expired while nobody looked are noted in the order in which
// they have expired.
func TestGrantsExpireInOrder(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	for i, at := range []int{3, 1, 2} {
		l.grant(fmt.Sprint("g", at), credit.Amount(i+1), 10*i, hour(at))
	}
	l.wait(hour(5))
	l.want("0/0")
	var order []string
	for _, e := range l.entries[3:] {
		order = append(order, e.Lot.Movement)
	}
	if want := []string{"g1", "g2", "g3"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

func TestExpiryTakesOnlyWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.grant("a", 10, 50, hour(1))
	h := l.place(6, hour(3))
	l.wait(hour(2), h)
	l.want("6/6 a:6/6")
	if !l.NextDue.Equal(hour(3)) {
		t.Errorf("next due %v", l.NextDue)
	}
	e, expired, err := l.Capture(h, 4, l.now)
	l.note(err, append([]credit.Entry{e}, expired...)...)
	l.want("0/0")
	if h.State != credit.HoldCaptured || h.Captured != 4 || len(expired) != 1 || expired[0].Amount != 2 {
		t.Errorf("%+v %+v", h, expired)
	}
}

func TestReleaseAfterExpiry(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.base(5)
	l.grant("a", 10, 50, hour(1))
	h := l.place(12, time.Time{})
	l.want("15/12 a:10/10")
	l.wait(hour(2), h)
	l.want("15/12 a:10/10")
	expired, err := l.Release(h, l.now)
	l.note(err, expired...)
	l.want("5/0")
	if _, err := l.Release(h, l.now); !errors.Is(err, credit.ErrClosed) {
		t.Error(err)
	}
	if _, _, err := l.Capture(h, 0, l.now); !errors.Is(err, credit.ErrClosed) {
		t.Error(err)
	}
	l.want("5/0")
}

// A hold and the grant that it is taken from expire together, and nobody
// notices the one without the other.
func TestHoldAndGrantExpireTogether(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.grant("a", 10, 50, hour(1))
	h := l.place(4, hour(1))
	l.wait(hour(1), h)
	l.want("0/0")
	if h.State != credit.HoldExpired || !h.ClosedAt.Equal(hour(1)) || h.Captured != 0 {
		t.Errorf("%+v", h)
	}
}

func TestHoldsArePinned(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.base(5)
	l.grant("a", 5, 10, time.Time{})
	h := l.place(7, time.Time{})
	l.want("10/7 a:5/5")
	l.grant("b", 5, 0, time.Time{})
	l.charge(6) // b first, then the base: a is held
	l.want("9/7 a:5/5")
	e, expired, err := l.Capture(h, 6, l.now)
	l.note(err, append([]credit.Entry{e}, expired...)...)
	l.want("3/0")
	if len(expired) != 0 || e.Kind != credit.Capture || e.Amount != 6 || e.Delta != -6 {
		t.Errorf("%+v %+v", e, expired)
	}
}

func TestCapture(t *testing.T) {
	t.Parallel()
	for amount, want := range map[credit.Amount]string{0: "20/0 a:10/0", 3: "17/0 a:7/0", 10: "10/0", 12: "8/0"} {
		l := newLedger(t)
		l.base(10)
		l.grant("a", 10, 10, time.Time{})
		h := l.place(12, time.Time{})
		e, _, err := l.Capture(h, amount, l.now)
		l.note(err, e)
		l.want(want)
	}
	l := newLedger(t)
	l.base(10)
	h := l.place(5, time.Time{})
	for _, amount := range []credit.Amount{6, -1, credit.MaxAmount} {
		if _, _, err := l.Capture(h, amount, l.now); !errors.Is(err, credit.ErrHoldAmount) {
			t.Errorf("capture of %d: %v", amount, err)
		}
	}
	l.want("10/5")
}

func TestNothingBelowZero(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.base(10)
	l.place(4, time.Time{})
	for name, err := range map[string]error{
		"charge": refused(l.Spend(credit.Charge, 7, 7, l.now)),
		"adjust": refused(l.Spend(credit.Adjust, 7, -7, l.now)),
		"place":  l.Place(&credit.Hold{ID: "i", Amount: 7}, l.now),
	} {
		if !errors.Is(err, credit.ErrInsufficient) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.want("10/4")
	l.charge(6)
	l.want("4/4")
}

func refused(_ credit.Entry, err error) error { return err }

// What is owed is paid by the next grant, and only the rest of it can expire.
func TestDebtsArePaidFirst(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.AllowNegative = true
	l.charge(5)
	l.grant("a", 3, 10, hour(1))
	l.want("-2/0")
	l.grant("b", 10, 10, hour(1))
	l.want("8/0 b:8/0")
	l.wait(hour(1))
	l.want("0/0")
}

// Credits that are held beyond what there is are owed, too: what comes in for
// them does not expire under the hold.
func TestHeldDebtsArePaidFirst(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.AllowNegative = true
	h := l.place(10, time.Time{})
	l.grant("a", 12, 10, hour(1))
	l.want("12/10 a:2/0")
	l.wait(hour(2), h)
	l.want("10/10")
	if l.Available() != 0 {
		t.Errorf("time has taken what was held: %d are available", l.Available())
	}
}

// A grant that was held while credits were spent that nobody had: when the hold
// ends, the grant pays for them before anything of it expires.
func TestFreedGrantsPayDebts(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *ledger, h *credit.Hold){
		"release": func(l *ledger, h *credit.Hold) {
			expired, err := l.Release(h, l.now)
			l.note(err, expired...)
		},
		"capture": func(l *ledger, h *credit.Hold) {
			e, expired, err := l.Capture(h, 0, l.now)
			l.note(err, append([]credit.Entry{e}, expired...)...)
		},
		"expiry": func(l *ledger, h *credit.Hold) { l.wait(hour(3), h) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.AllowNegative = true
			l.grant("a", 10, 10, hour(2))
			h := l.place(10, hour(3))
			l.charge(4)
			l.want("6/10 a:10/10")
			l.wait(hour(2), h)
			l.want("6/10 a:10/10")
			end(l, h)
			l.want("0/0") // 4 of the 10 are paid, 6 have expired
		})
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.base(credit.MaxAmount)
	for name, err := range map[string]error{
		"topup":  refused(l.Topup(1, credit.Grant{Priority: 50}, l.now)),
		"grant":  refused(l.Topup(1, credit.Grant{Priority: 1}, l.now)),
		"adjust": refused(l.Add(credit.Adjust, 1, 1, l.now)),
	} {
		if !errors.Is(err, credit.ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.want("999999999999999999/0")
	l = newLedger(t)
	l.AllowNegative = true
	l.place(credit.MaxAmount, time.Time{})
	for name, err := range map[string]error{
		"charge": refused(l.Spend(credit.Charge, 1, 1, l.now)),
		"place":  l.Place(&credit.Hold{ID: "i", Amount: 1}, l.now),
	} {
		if !errors.Is(err, credit.ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.want("0/999999999999999999")
}

// Entries are never dated before the latest one.
func TestEntriesDoNotRunBackwards(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.base(10)
	l.now = hour(-2)
	l.charge(1)
	if e := l.entries[1]; !e.At.Equal(start) {
		t.Errorf("dated %v", e.At)
	}
}
