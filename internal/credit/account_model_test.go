package credit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/credit/credittest"
)

// machine runs an account and its model side by side, and does for the account
// what the store does: it keeps what is left, in any order, and numbers it.
type machine struct {
	account credit.Account
	model   *credittest.Model
	holds   map[string]*credit.Hold // the open ones
	now     time.Time
	sum     credit.Amount
	latest  time.Time
	grants  int
	number  int64
}

func (m *machine) note(t *rapid.T, entries ...credit.Entry) {
	t.Helper()
	for _, e := range entries {
		if m.sum += e.Delta; e.BalanceAfter != m.sum {
			t.Fatalf("%s of %d: the balance after it is said to be %d, it is %d", e.Kind, e.Delta, e.BalanceAfter, m.sum)
		}
		if e.At.Before(m.latest) {
			t.Fatalf("%s is dated before the one before it", e.Kind)
		}
		if e.Kind == credit.Expiry && m.account.Available() < 0 {
			t.Fatalf("time has left %d available", m.account.Available())
		}
		m.latest = e.At
	}
}

// settle is what the store does before anything is decided.
func (m *machine) settle(t *rapid.T) {
	m.account.Due, m.account.NextHold = nil, time.Time{}
	if credittest.Over(m.account.NextDue, m.now) {
		for _, h := range m.holds {
			switch {
			case h.ExpiresAt.IsZero():
			case credittest.Over(h.ExpiresAt, m.now):
				m.account.Due = append(m.account.Due, h)
			case m.account.NextHold.IsZero() || h.ExpiresAt.Before(m.account.NextHold):
				m.account.NextHold = h.ExpiresAt
			}
		}
	}
	m.note(t, m.account.Settle(m.now)...)
	for _, id := range m.model.Pass(m.now) {
		if m.holds[id].State != credit.HoldExpired {
			t.Fatalf("hold %s is %s", id, m.holds[id].State)
		}
		delete(m.holds, id)
	}
}

// refused compares a refusal with the model's, and sees that nothing changed.
func (m *machine) refused(t *rapid.T, err error, allowed bool, before string) {
	t.Helper()
	if (err == nil) != allowed || err != nil && !errors.Is(err, credit.ErrInsufficient) {
		t.Fatalf("%v; the model allows it: %v", err, allowed)
	}
	if after := m.print(); err != nil && before != after {
		t.Fatalf("a refusal has changed %s to %s", before, after)
	}
}

// print writes everything there is of the account.
func (m *machine) print() string {
	var text strings.Builder
	fmt.Fprint(&text, m.account.Posted, m.account.Held, m.account.NextDue, m.account.UpdatedAt)
	for _, l := range m.account.Lots {
		fmt.Fprint(&text, *l)
	}
	return text.String()
}

// draw draws a time from now on, or none.
func (m *machine) draw(t *rapid.T) time.Time {
	hours := rapid.IntRange(0, 6).Draw(t, "hours")
	if hours == 0 {
		return time.Time{}
	}
	return m.now.Add(time.Duration(hours) * time.Hour)
}

func amount(t *rapid.T) int { return rapid.IntRange(1, 8).Draw(t, "amount") }

func (m *machine) topup(t *rapid.T) {
	n, expires := amount(t), m.draw(t)
	priority := rapid.SampledFrom([]int{0, 49, 50, 51}).Draw(t, "priority")
	m.grants++
	name := fmt.Sprint("g", m.grants)
	e, err := m.account.Topup(credit.Amount(n), credit.Grant{Priority: priority, ExpiresAt: expires, Movement: name}, m.now)
	if err != nil {
		t.Fatal(err)
	}
	m.note(t, e)
	m.model.Topup(n, credittest.Grant{Name: name, Priority: priority, Expires: expires, Created: e.At})
}

func (m *machine) charge(t *rapid.T) {
	n, before := amount(t), m.print()
	e, err := m.account.Spend(credit.Charge, credit.Amount(n), credit.Amount(n), m.now)
	m.refused(t, err, m.model.Spend(n), before)
	if err == nil {
		m.note(t, e)
	}
}

func (m *machine) adjust(t *rapid.T) {
	n := amount(t)
	e, err := m.account.Add(credit.Adjust, credit.Amount(n), credit.Amount(n), m.now)
	if err != nil {
		t.Fatal(err)
	}
	m.note(t, e)
	m.model.Add(n)
}

func (m *machine) place(t *rapid.T) {
	n, before := amount(t), m.print()
	m.number++
	h := &credit.Hold{ID: fmt.Sprint("h", m.number), Amount: credit.Amount(n), ExpiresAt: m.draw(t)}
	err := m.account.Place(h, m.now)
	m.refused(t, err, m.model.Place(h.ID, n, h.ExpiresAt), before)
	if err == nil {
		m.holds[h.ID] = h
	}
}

// pick draws an open hold; nil if there is none.
func (m *machine) pick(t *rapid.T) *credit.Hold {
	var ids []string
	for id := range m.holds {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return m.holds[rapid.SampledFrom(ids).Draw(t, "hold")]
}

func (m *machine) capture(t *rapid.T) {
	h := m.pick(t)
	if h == nil {
		return
	}
	n := rapid.IntRange(0, int(h.Amount)+1).Draw(t, "captured")
	before := m.print()
	e, expired, err := m.account.Capture(h, credit.Amount(n), m.now)
	if n > int(h.Amount) {
		if !errors.Is(err, credit.ErrHoldAmount) || m.print() != before || h.State != credit.HoldOpen {
			t.Fatalf("a capture of more than is held: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.note(t, append([]credit.Entry{e}, expired...)...)
	m.model.End(h.ID, n, m.now)
	delete(m.holds, h.ID)
}

func (m *machine) release(t *rapid.T) {
	h := m.pick(t)
	if h == nil {
		return
	}
	expired, err := m.account.Release(h, m.now)
	if err != nil {
		t.Fatal(err)
	}
	m.note(t, expired...)
	m.model.End(h.ID, 0, m.now)
	delete(m.holds, h.ID)
	if _, err := m.account.Release(h, m.now); !errors.Is(err, credit.ErrClosed) {
		t.Fatal(err)
	}
}

// store writes the account and reads it again: what is used up is gone, and
// the order of lots is nobody's promise.
func (m *machine) store(t *rapid.T) {
	for _, l := range m.account.Lots {
		if l.Number == 0 {
			m.number++
			l.Number = m.number
		}
	}
	m.account.Lots = slices.DeleteFunc(m.account.Lots, func(l *credit.Lot) bool { return l.Remaining == 0 })
	m.account.Lots = rapid.Permutation(m.account.Lots).Draw(t, "order")
}

func (m *machine) wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(-2, 4).Draw(t, "hours")) * time.Hour)
	m.settle(t)
}

func (m *machine) check(t *rapid.T) {
	t.Helper()
	a := &m.account
	if int(a.Posted) != m.model.Posted() || int(a.Held) != m.model.Held() || a.Posted != m.sum {
		t.Fatalf("posted %d held %d; the model has %d and %d; the entries sum to %d", a.Posted, a.Held, m.model.Posted(), m.model.Held(), m.sum)
	}
	if !a.AllowNegative && a.Available() < 0 {
		t.Fatalf("%d are available", a.Available())
	}
	coins := 0
	for _, l := range a.Lots {
		remaining, pinned := m.model.Lot(l.Movement)
		if int(l.Remaining) != remaining || int(l.Pinned) != pinned || l.Remaining > l.Granted {
			t.Fatalf("lot %s has %d/%d; the model has %d/%d", l.Movement, l.Remaining, l.Pinned, remaining, pinned)
		}
		coins += remaining
	}
	if coins != m.model.Coins() {
		t.Fatalf("the model has %d credits in lots, the account %d", m.model.Coins(), coins)
	}
	if next := m.model.Next(); !next.IsZero() && (a.NextDue.IsZero() || a.NextDue.After(next)) {
		t.Fatalf("next due %v; something happens at %v", a.NextDue, next)
	}
}

// Whatever is asked for, in whatever order, by whatever clock: the account is
// as if every credit were a coin.
func TestAccountAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		negative := rapid.Bool().Draw(t, "may be negative")
		m := &machine{holds: map[string]*credit.Hold{}, now: start, model: credittest.New(negative)}
		m.account.AllowNegative = negative
		t.Repeat(map[string]func(*rapid.T){
			"topup": m.topup, "charge": m.charge, "adjust": m.adjust, "place": m.place,
			"capture": m.capture, "release": m.release, "wait": m.wait, "store": m.store, "": m.check,
		})
	})
}
