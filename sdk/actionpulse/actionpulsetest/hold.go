package actionpulsetest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

// The states of holds.
const (
	holdOpen     = "open"
	holdCaptured = "captured"
	holdReleased = "released"
	holdExpired  = "expired"
)

// holdContent is what of a hold's body is compared: everything, by value.
var holdContent = idempotency.NormalJSON(
	idempotency.Field{Name: "amount", Kind: idempotency.Decimal},
	idempotency.Field{Name: "expires_at", Kind: idempotency.Timestamp},
)

// hold is an amount that is or was set aside.
type hold struct {
	number              int64
	amount, captured    amount
	pins                []pin
	account             *account
	content             idempotency.Print
	expiresAt           time.Time
	createdAt, closedAt time.Time
	wire                api.Hold
	// execution is the one that it is for, and that alone ends it; empty if the
	// caller placed it.
	execution string
}

func (h *hold) close(state string, at time.Time) {
	h.closedAt, h.wire.State, h.wire.ClosedAt = at, state, api.OptionalTime(at)
}

// find returns a hold, nil if there is none.
func (c *customer) hold(id string) *hold {
	for _, h := range c.holds {
		if h.wire.ID == id {
			return h
		}
	}
	return nil
}

// addHold writes a hold whose amount was set aside.
func (s *Server) addHold(c *customer, h *hold) {
	now := s.time()
	s.ledger.keep(c, h.account, now)
	h.number, h.createdAt = int64(len(c.holds))+1, h.account.at(now)
	h.wire.Customer, h.wire.CreditType, h.wire.Amount, h.wire.Captured = c.id, h.account.creditType, h.amount.String(), "0"
	h.wire.State, h.wire.CreatedAt = holdOpen, api.TimeText(h.createdAt)
	c.holds = append(c.holds, h)
}

// holdReply answers about a hold, with the movement that has used it.
func (s *Server) holdReply(status int, h *hold) (reply, error) {
	out := api.HoldAnswer{Hold: h.wire, Balance: h.account.wire()}
	if h.wire.Movement != nil {
		out.Movement = &s.ledger.movement(*h.wire.Movement).wire
	}
	return jsonReply(status, out)
}

// placeHold sets an amount aside, once for each id of a hold.
func (s *Server) placeHold(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	in, err := decode[api.NewHold](x)
	if err != nil {
		return reply{}, err
	}
	n, err := readAmount(in.Amount)
	if err != nil {
		return reply{}, err
	}
	if err := checkHold(x, &in, n); err != nil {
		return reply{}, err
	}
	c, id := s.ledger.find(x.pathText("external_user_id")), x.pathText("hold_id")
	if c == nil {
		return reply{}, errNoCustomer
	}
	content := holdContent.Print(&idempotency.Request{Body: x.body})
	if h := c.hold(id); h != nil {
		if differs := content.Differs(h.content); len(differs) > 0 {
			return reply{}, refuse(api.CodeConflict, "there is a hold of this name with other content").
				with("state", h.wire.State).with("differs", differs)
		}
		return s.holdReply(http.StatusOK, h)
	}
	h := &hold{amount: n, account: s.ledger.account(c, in.CreditType), content: content, expiresAt: expiryOf(in.ExpiresAt)}
	if past(h.expiresAt, s.time()) {
		return reply{}, invalidRequest("expires_at", "must be in the future")
	}
	if h.pins, err = h.account.place(n); err != nil {
		return reply{}, h.account.refusal(err)
	}
	h.wire = api.Hold{ID: id, Reason: some(in.Reason), Metadata: in.Metadata, ExpiresAt: api.OptionalTime(h.expiresAt)}
	s.addHold(c, h)
	return s.holdReply(http.StatusCreated, h)
}

// checkHold refuses with invalid_request.
func checkHold(x *exchange, in *api.NewHold, n amount) error {
	switch {
	case !validName200(x.pathText("external_user_id")):
		return validateCustomer(x.pathText("external_user_id"))
	case !validName200(x.pathText("hold_id")):
		return invalidRequest("hold", "has 1 to 200 characters and no control characters, and is not . or ..")
	case n <= 0:
		return invalidRequest("amount", "must be more than zero")
	case !validCreditType(in.CreditType):
		return invalidRequest("credit_type", "is a name of 1 to 64 characters")
	default:
		return checkNote(in.Reason, in.Metadata)
	}
}

// holdInPath returns the hold that is to be ended. It refuses with not_found,
// customer_not_found, and conflict for the hold of an execution.
func (s *Server) holdInPath(x *exchange) (*hold, error) {
	if !validName200(x.pathText("external_user_id")) || !validName200(x.pathText("hold_id")) {
		return nil, errNoHold
	}
	c := s.ledger.find(x.pathText("external_user_id"))
	if c == nil {
		return nil, errNoCustomer
	}
	h := c.hold(x.pathText("hold_id"))
	if h == nil {
		return nil, errNoHold
	}
	if h.execution != "" {
		return nil, refuse(api.CodeConflict, "the hold belongs to an execution, which ends it").
			with("state", h.wire.State).with("execution_id", h.execution)
	}
	return h, nil
}

var errNoHold = refuse(api.CodeNotFound, "there is no such hold")

// closed is the refusal to do something to a hold that has ended.
func (h *hold) closed() error {
	f := refuse(api.CodeConflict, "the hold is not open any more: it was "+h.wire.State).with("state", h.wire.State)
	if h.wire.State == holdCaptured {
		f = f.with("captured", h.captured.String())
	}
	return f
}

// captureHold uses an amount of a hold and lets the rest go, once.
func (s *Server) captureHold(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	in, err := decodeOptional[api.HoldCapture](x)
	if err != nil {
		return reply{}, err
	}
	n, err := readAmountOr(in.Amount, -1)
	whole := err == nil && n == -1 && (len(in.Amount) == 0 || isNull(in.Amount))
	switch {
	case err != nil:
		return reply{}, err
	case n < 0 && !whole:
		return reply{}, invalidRequest("amount", "must not be less than zero")
	}
	if err := checkNote(in.Reason, in.Metadata); err != nil {
		return reply{}, err
	}
	h, err := s.holdInPath(x)
	if err != nil {
		return reply{}, err
	}
	if whole {
		n = h.amount
	}
	switch {
	case h.wire.State == holdCaptured && h.captured == n:
		return s.holdReply(http.StatusOK, h)
	case h.wire.State != holdOpen:
		return reply{}, h.closed()
	case n > h.amount:
		return reply{}, invalidRequest("amount", "is more than what is held").with("held", h.amount.String())
	}
	m := s.capture(h, n)
	m.wire.Reason, m.wire.Metadata = some(in.Reason), in.Metadata
	return s.holdReply(http.StatusOK, h)
}

// capture uses an amount of an open hold and lets the rest go.
func (s *Server) capture(h *hold, n amount) *movement {
	now := s.time()
	h.account.capture(n, h.amount, h.pins, now)
	m := s.ledger.add(h.account, "capture", n, -n)
	if m.wire.Hold = &h.wire.ID; h.execution != "" {
		m.wire.ExecutionID = &h.execution
	}
	h.captured, h.wire.Captured, h.wire.Movement = n, n.String(), &m.wire.ID
	s.letGo(h, holdCaptured)
	return m
}

// letGo ends a hold.
func (s *Server) letGo(h *hold, state string) {
	now := s.time()
	h.account.unhold(h.amount, h.pins)
	h.close(state, h.account.at(now))
	s.ledger.expire(h.account, now)
}

// releaseHold lets a hold go, once.
func (s *Server) releaseHold(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	h, err := s.holdInPath(x)
	switch {
	case err != nil:
		return reply{}, err
	case h.wire.State == holdReleased:
	case h.wire.State != holdOpen:
		return reply{}, h.closed()
	default:
		s.letGo(h, holdReleased)
	}
	return s.holdReply(http.StatusOK, h)
}

func (s *Server) getHold(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	if c := s.ledger.find(x.pathText("external_user_id")); c != nil {
		if h := c.hold(x.pathText("hold_id")); h != nil {
			return jsonReply(http.StatusOK, api.HoldDetails{Hold: h.wire})
		}
	}
	return reply{}, errNoHold
}

// listHolds lists a customer's holds, latest first.
func (s *Server) listHolds(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	p, err := x.page(isNumber)
	if err != nil {
		return reply{}, err
	}
	state, err := x.text("state")
	if err != nil {
		return reply{}, err
	}
	switch state {
	case "", holdOpen, holdCaptured, holdReleased, holdExpired:
	default:
		return reply{}, invalidField("state", "is open, captured, released or expired")
	}
	c := s.ledger.find(x.pathText("external_user_id"))
	if c == nil {
		return reply{}, errNoCustomer
	}
	all := latestFirst(c.holds, func(h *hold) bool {
		return (state == "" || h.wire.State == state) && (p.number() == 0 || h.number < p.number())
	})
	return listReply(p, all, func(h *hold) api.Hold { return h.wire }, func(h *hold) string { return strconv.FormatInt(h.number, 10) })
}
