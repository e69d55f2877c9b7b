package actionpulsetest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

const (
	maxCreditType = 64
	maxReason     = 500
)

// move is what a topup, charge or adjustment asks for.
type move struct {
	kind      string
	customer  string
	amount    amount
	priority  int
	expiresAt time.Time
	api.CreditMove
}

func (s *Server) topup(x *exchange) (reply, error)  { return s.move(x, "topup") }
func (s *Server) charge(x *exchange) (reply, error) { return s.move(x, "charge") }
func (s *Server) adjust(x *exchange) (reply, error) { return s.move(x, "adjust") }

// move moves credits once for each key: only a success takes it.
func (s *Server) move(x *exchange, kind string) (reply, error) {
	s.ledger.settle(s.time())
	policy, id := idempotency.CreditMovement(s.retention), x.pathText("external_user_id")
	r := s.asked(x, &policy, idempotency.Fact{Name: "method", Value: kind}, idempotency.Fact{Name: "customer", Value: id})
	if result, err := s.judge(x, r); err != nil {
		return reply{}, err
	} else if result != nil {
		return s.movedBefore(result)
	}
	m, err := readMove(x, kind, s.time())
	if err != nil {
		return reply{}, err
	}
	if err := validateCustomer(id); err != nil {
		return reply{}, err
	}
	m.customer = id
	made, err := s.doMove(m)
	if err != nil {
		return reply{}, err
	}
	made.wire.IdempotencyKey = &x.key
	answer, err := jsonReply(http.StatusOK, api.CreditMoved{Movement: made.wire, Balance: made.account.wire()})
	s.take(r, idempotency.Resource{Kind: kind, ID: made.wire.ID}, &idempotency.Answer{Status: answer.status, Body: answer.body})
	return answer, err
}

// movedBefore answers a repeat: as the first request was answered, or, when that
// is not kept any more, with the movement and the present balance.
func (s *Server) movedBefore(result *idempotency.Result) (reply, error) {
	if result.Answer != nil {
		return reply{status: result.Answer.Status, body: result.Answer.Body}, nil
	}
	m := s.ledger.movement(result.Record.Resource.ID)
	return jsonReply(http.StatusOK, api.CreditMoved{Movement: m.wire, Balance: m.account.wire(), ResponseExpired: true})
}

// readMove reads and checks a body. It refuses with invalid_json and
// invalid_request.
func readMove(x *exchange, kind string, now time.Time) (m move, err error) {
	m = move{kind: kind, priority: defaultPriority}
	if kind == "topup" {
		var in api.CreditTopup
		if in, err = decode[api.CreditTopup](x); err != nil {
			return m, err
		}
		m.CreditMove = in.CreditMove
		if in.Priority != nil {
			m.priority = *in.Priority
		}
		m.expiresAt = expiryOf(in.ExpiresAt)
	} else if m.CreditMove, err = decode[api.CreditMove](x); err != nil {
		return m, err
	}
	if m.amount, err = readAmount(m.Amount); err != nil {
		return m, err
	}
	switch {
	case m.amount == 0 || kind != "adjust" && m.amount < 0:
		return m, invalidRequest("amount", "must be more than zero, and not zero for an adjustment")
	case past(m.expiresAt, now):
		return m, invalidRequest("expires_at", "must be in the future")
	case !validCreditType(m.CreditType):
		return m, invalidRequest("credit_type", "is a name of 1 to 64 characters")
	}
	return m, checkNote(m.Reason, m.Metadata)
}

// expiryOf reads a time that was checked, and may be absent.
func expiryOf(text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	at, _ := time.Parse(time.RFC3339, *text)
	return at.UTC().Truncate(time.Microsecond)
}

// doMove moves credits. It refuses with customer_not_found,
// insufficient_credits and invalid_request.
func (s *Server) doMove(m move) (*movement, error) {
	now, l := s.time(), s.ledger
	c := l.find(m.customer)
	if c == nil {
		if m.kind != "topup" {
			return nil, errNoCustomer
		}
		c, _ = l.ensure(m.customer, now)
	}
	a, delta := l.account(c, m.CreditType), m.amount
	var err error
	granted := &lot{number: l.grants + 1, priority: m.priority, expiresAt: m.expiresAt}
	switch {
	case m.kind == "topup":
		err = a.topup(m.amount, granted, now)
	case m.kind == "charge" || m.amount < 0:
		delta = -max(m.amount, -m.amount)
		err = a.spend(-delta, now)
	default:
		err = a.add(m.amount, now)
	}
	if err != nil {
		return nil, a.refusal(err)
	}
	l.keep(c, a, now)
	made := l.add(a, m.kind, m.amount, delta)
	made.wire.Reason, made.wire.Metadata = some(m.Reason), m.Metadata
	if m.kind == "topup" {
		l.grants++
		granted.movement = made.wire.ID
		made.wire.Priority, made.wire.ExpiresAt = &m.priority, api.OptionalTime(m.expiresAt)
	}
	return made, nil
}

// validateCustomer checks a customer's id. It refuses with invalid_request.
func validateCustomer(id string) error {
	if !validName200(id) {
		return invalidRequest("customer", "has 1 to 200 characters and no control characters, and is not . or ..")
	}
	return nil
}

// validName200 is what ids of customers and holds must be.
func validName200(id string) bool {
	return id != "" && id != "." && id != ".." && utf8.ValidString(id) && utf8.RuneCountInString(id) <= maxName && !hasControl(id)
}

func validCreditType(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxCreditType && utf8.ValidString(name) && !hasControl(name) && strings.TrimSpace(name) == name
}

// checkNote checks what may be said about a movement or hold. It refuses with
// invalid_request.
func checkNote(reason *string, metadata map[string]json.RawMessage) error {
	if reason != nil && (hasControl(*reason) || utf8.RuneCountInString(*reason) > maxReason) {
		return invalidRequest("reason", "has at most 500 characters and no control characters")
	}
	if size, err := json.Marshal(metadata); err != nil || len(size) > metadataLimit {
		return invalidRequest("metadata", "holds at most 16384 bytes")
	}
	return nil
}

var errNoCustomer = refuse(api.CodeCustomerNotFound, "there is no such customer")
