package actionpulsetest

import (
	"encoding/json"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// defaultPriority is that of a topup that says none.
const defaultPriority = 50

// ledger is what is known of customers and their credits.
type ledger struct {
	// customers, types and movements are in the order in which they were made;
	// their numbers begin at 1.
	customers []*customer
	types     []api.CreditType
	movements []*movement
	grants    int64
}

// customer is somebody whom credits are kept for.
type customer struct {
	number    int64
	id        string
	metadata  map[string]json.RawMessage
	createdAt time.Time
	accounts  map[string]*account
	// holds are in the order in which they were placed.
	holds []*hold
}

// movement is an entry of the ledger.
type movement struct {
	number        int64
	at            time.Time
	amount, delta amount
	account       *account
	wire          api.Movement
	// undo is what has reversed it, nil if nothing has.
	undo *movement
}

func newLedger() *ledger { return &ledger{} }

// find returns a customer, nil if there is none.
func (l *ledger) find(id string) *customer {
	for _, c := range l.customers {
		if c.id == id {
			return c
		}
	}
	return nil
}

// ensure returns a customer, and whether it was made.
func (l *ledger) ensure(id string, now time.Time) (*customer, bool) {
	if c := l.find(id); c != nil {
		return c, false
	}
	c := &customer{number: int64(len(l.customers)) + 1, id: id, createdAt: now, accounts: map[string]*account{}}
	l.customers = append(l.customers, c)
	return c, true
}

// creditType returns a credit type, nil if there is none.
func (l *ledger) creditType(name string) *api.CreditType {
	for i := range l.types {
		if l.types[i].Name == name {
			return &l.types[i]
		}
	}
	return nil
}

// declare returns a credit type, and whether it was made.
func (l *ledger) declare(name string, negative bool, now time.Time) (*api.CreditType, bool) {
	if t := l.creditType(name); t != nil {
		return t, false
	}
	l.types = append(l.types, api.CreditType{Name: name, AllowNegative: negative, CreatedAt: api.TimeText(now)})
	return &l.types[len(l.types)-1], true
}

// account returns a customer's balance of a credit type. What is not there is
// empty, and is kept once something has happened to it ([ledger.keep]).
func (l *ledger) account(c *customer, creditType string) *account {
	if a := c.accounts[creditType]; a != nil {
		return a
	}
	a := &account{customer: c.id, creditType: creditType}
	if t := l.creditType(creditType); t != nil {
		a.negative = t.AllowNegative
	}
	return a
}

// keep makes an account, and its credit type, that was empty.
func (l *ledger) keep(c *customer, a *account, now time.Time) {
	l.declare(a.creditType, false, now)
	c.accounts[a.creditType] = a
}

// movement returns a movement, nil if there is none.
func (l *ledger) movement(id string) *movement {
	for _, m := range l.movements {
		if m.wire.ID == id {
			return m
		}
	}
	return nil
}

// add writes a movement of an account that has changed by delta.
func (l *ledger) add(a *account, kind string, asked, delta amount) *movement {
	m := &movement{
		number: int64(len(l.movements)) + 1, at: a.updatedAt, amount: asked, delta: delta, account: a,
		wire: api.Movement{
			ID: newID(), Kind: kind, Customer: a.customer, CreditType: a.creditType, Amount: asked.String(), Delta: delta.String(),
			BalanceAfter: a.posted.String(), CreatedAt: api.TimeText(a.updatedAt),
		},
	}
	l.movements = append(l.movements, m)
	return m
}

// settle does what time has done by now: holds expire, and then what is left of
// expired topups and not held.
func (l *ledger) settle(now time.Time) {
	for _, c := range l.customers {
		for _, h := range c.holds {
			if h.wire.State == holdOpen && past(h.expiresAt, now) {
				h.account.unhold(h.amount, h.pins)
				h.close(holdExpired, h.account.at(now))
			}
		}
		for _, name := range sortedKeys(c.accounts) {
			l.expire(c.accounts[name], now)
		}
	}
}

// expire writes what expires of an account now.
func (l *ledger) expire(a *account, now time.Time) {
	before := a.posted
	for _, gone := range a.expire(now) {
		before -= gone
		l.add(a, "expiry", gone, -gone).wire.BalanceAfter = before.String()
	}
}

// Movements returns the entries of the ledger of one customer, or of all for "",
// in the order in which they were made.
func (s *Server) Movements(customer string) []api.Movement {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.settle(s.time())
	var list []api.Movement
	for _, m := range s.ledger.movements {
		if customer == "" || m.wire.Customer == customer {
			list = append(list, m.wire)
		}
	}
	return list
}

// Balance returns what a customer has of a credit type: zeros if there is no such
// customer.
func (s *Server) Balance(customer, creditType string) api.Balance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.settle(s.time())
	if c := s.ledger.find(customer); c != nil {
		return s.ledger.account(c, creditType).wire()
	}
	return (&account{}).wire()
}

// Give tops a customer up without a request, as a test's beginning. An amount
// that is none, such as "-1", ends the test.
func (s *Server) Give(customer, creditType, credits string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := parseAmount(credits)
	if !ok || n <= 0 {
		s.t.Fatalf("actionpulsetest: %q is no amount above zero", credits)
	}
	now := s.time()
	c, _ := s.ledger.ensure(customer, now)
	a := s.ledger.account(c, creditType)
	if err := a.add(n, now); err != nil {
		s.t.Fatalf("actionpulsetest: give %s: %v", credits, err)
	}
	s.ledger.keep(c, a, now)
	m, priority := s.ledger.add(a, "topup", n, n), defaultPriority
	m.wire.Priority = &priority
}
