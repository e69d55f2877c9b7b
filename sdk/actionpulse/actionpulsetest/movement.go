package actionpulsetest

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// kindsOfMovements are what a movement may be.
var kindsOfMovements = []string{"", "topup", "charge", "adjust", "capture", "reversal", "expiry"}

// movementFilter says which movements are asked for.
type movementFilter struct {
	customer, creditType, kind string
	from, to                   time.Time
}

func (f *movementFilter) keeps(m *movement) bool {
	return (f.customer == "" || m.wire.Customer == f.customer) && (f.creditType == "" || m.wire.CreditType == f.creditType) &&
		(f.kind == "" || m.wire.Kind == f.kind) && within(m.at, f.from, f.to)
}

// movementFilter refuses with validation_failed.
func (x *exchange) movementFilter() (f movementFilter, err error) {
	for name, to := range map[string]*string{"customer": &f.customer, "credit_type": &f.creditType, "kind": &f.kind} {
		if *to, err = x.text(name); err != nil {
			return f, err
		}
	}
	for name, to := range map[string]*time.Time{"from": &f.from, "to": &f.to} {
		if *to, err = x.timeIn(name); err != nil {
			return f, err
		}
	}
	switch {
	case !slices.Contains(kindsOfMovements, f.kind):
		return f, invalidField("kind", "is topup, charge, adjust, capture, reversal or expiry")
	case f.customer != "" && !validName200(f.customer):
		return f, invalidField("customer", "must be a customer's id")
	case f.creditType != "" && !validCreditType(f.creditType):
		return f, invalidField("credit_type", "must be the name of a credit type")
	}
	return f, nil
}

// listMovements lists movements, latest first.
func (s *Server) listMovements(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	p, err := x.page(isNumber)
	if err != nil {
		return reply{}, err
	}
	f, err := x.movementFilter()
	if err != nil {
		return reply{}, err
	}
	all := latestFirst(s.ledger.movements, func(m *movement) bool { return f.keeps(m) && (p.number() == 0 || m.number < p.number()) })
	return listReply(p, all, func(m *movement) api.Movement { return m.wire }, func(m *movement) string { return strconv.FormatInt(m.number, 10) })
}

var errNoMovement = refuse(api.CodeNotFound, "there is no such movement")

func (s *Server) getMovement(x *exchange) (reply, error) {
	m := s.ledger.movement(x.pathText("movement_id"))
	if m == nil {
		return reply{}, errNoMovement
	}
	out := api.MovementDetails{Movement: m.wire}
	if m.undo != nil {
		out.Reversal = &m.undo.wire
	}
	return jsonReply(http.StatusOK, out)
}

// reverseMovement undoes a movement, in part or whole, once.
func (s *Server) reverseMovement(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	in, err := decodeOptional[api.NewReversal](x)
	if err != nil {
		return reply{}, err
	}
	n, err := readAmountOr(in.Amount, maxAmount+1)
	if err != nil {
		return reply{}, err
	}
	m := s.ledger.movement(x.pathText("movement_id"))
	switch {
	case !isID(x.pathText("movement_id")):
		return reply{}, errNoMovement
	case n <= 0:
		return reply{}, invalidRequest("amount", "must be more than zero")
	}
	if err := checkNote(in.Reason, nil); err != nil {
		return reply{}, err
	}
	if m == nil {
		return reply{}, errNoMovement
	}
	moved := max(m.delta, -m.delta)
	if n > maxAmount {
		n = moved
	}
	switch reason := some(in.Reason); {
	case m.wire.Kind == "reversal" || m.wire.Kind == "expiry" || moved == 0:
		return reply{}, refuse(api.CodeConflict, "a movement of this kind cannot be reversed").with("kind", m.wire.Kind)
	case m.undo != nil && (m.undo.amount != n || text0(m.undo.wire.Reason) != text0(reason)):
		return reply{}, refuse(api.CodeConflict, "the movement was reversed with another amount or reason").
			with("reversal", m.undo.wire.ID).with("amount", m.undo.amount.String())
	case m.undo != nil:
		return jsonReply(http.StatusOK, api.CreditMoved{Movement: m.undo.wire, Balance: m.account.wire()})
	case n > moved:
		return reply{}, invalidRequest("amount", "is more than what was moved").with("moved", moved.String())
	}
	return s.reverse(m, n, in.Reason)
}

// reverse undoes an amount of a movement that was not reversed.
func (s *Server) reverse(m *movement, n amount, reason *string) (reply, error) {
	delta, undo := n, func() error { return m.account.add(n, s.time()) }
	if m.delta > 0 {
		delta, undo = -n, func() error { return m.account.takeBack(m.wire.ID, n, s.time()) }
	}
	if err := undo(); err != nil {
		return reply{}, m.account.refusal(err)
	}
	m.undo = s.ledger.add(m.account, "reversal", n, delta)
	m.undo.wire.Reason, m.undo.wire.ReversalOf = some(reason), &m.wire.ID
	return jsonReply(http.StatusCreated, api.CreditMoved{Movement: m.undo.wire, Balance: m.account.wire()})
}

// text0 is a text that may be absent; empty if it is.
func text0(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// getBalances tells what a customer had at a time.
func (s *Server) getBalances(x *exchange) (reply, error) {
	at, err := x.timeIn("at")
	if err != nil {
		return reply{}, err
	}
	c, err := s.customerInPath(x)
	if err != nil {
		return reply{}, err
	}
	if at.IsZero() {
		at = s.time()
	}
	out := api.Balances{Customer: c.id, At: api.TimeText(at), Balances: map[string]api.Balance{}}
	for name := range c.accounts {
		was := s.ledger.at(c, name, at)
		out.Balances[name] = was.wire()
	}
	return jsonReply(http.StatusOK, out)
}

// at is a balance as it was.
func (l *ledger) at(c *customer, creditType string, at time.Time) (was account) {
	for _, m := range l.movements {
		if m.account == c.accounts[creditType] && !m.at.After(at) {
			was.posted += m.delta
		}
	}
	for _, h := range c.holds {
		if h.account == c.accounts[creditType] && !h.createdAt.After(at) && (h.closedAt.IsZero() || h.closedAt.After(at)) {
			was.held += h.amount
		}
	}
	return was
}

// listGrants lists what is left of a customer's topups that expire or have a
// priority of their own, oldest first.
func (s *Server) listGrants(x *exchange) (reply, error) {
	p, err := x.page(isNumber)
	if err != nil {
		return reply{}, err
	}
	c, err := s.customerInPath(x)
	if err != nil {
		return reply{}, err
	}
	var all []api.Grant
	numbers := map[string]int64{}
	for _, name := range sortedKeys(c.accounts) {
		for _, g := range c.accounts[name].lots {
			if g.remaining == 0 || g.number <= p.number() {
				continue
			}
			numbers[g.movement] = g.number
			all = append(all, api.Grant{
				Movement: g.movement, CreditType: name, Priority: g.priority, Amount: g.granted.String(), Remaining: g.remaining.String(),
				Held: g.pinned.String(), ExpiresAt: api.OptionalTime(g.expiresAt), CreatedAt: api.TimeText(g.createdAt),
			})
		}
	}
	slices.SortFunc(all, func(a, b api.Grant) int { return int(numbers[a.Movement] - numbers[b.Movement]) })
	return listReply(p, all, func(g api.Grant) api.Grant { return g }, func(g api.Grant) string { return strconv.FormatInt(numbers[g.Movement], 10) })
}
