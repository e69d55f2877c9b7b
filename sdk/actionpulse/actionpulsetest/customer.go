package actionpulsetest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
)

func (c *customer) wire() api.Customer {
	out := api.Customer{Customer: c.id, Metadata: c.metadata, Balances: map[string]api.Balance{}, CreatedAt: api.TimeText(c.createdAt)}
	if out.Metadata == nil {
		out.Metadata = map[string]json.RawMessage{}
	}
	for name, a := range c.accounts {
		out.Balances[name] = a.wire()
	}
	return out
}

// listCustomers lists the customers, latest first.
func (s *Server) listCustomers(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	p, err := x.page(isNumber)
	if err != nil {
		return reply{}, err
	}
	all := latestFirst(s.ledger.customers, func(c *customer) bool { return p.number() == 0 || c.number < p.number() })
	return listReply(p, all, (*customer).wire, func(c *customer) string { return strconv.FormatInt(c.number, 10) })
}

// customerInPath refuses with customer_not_found.
func (s *Server) customerInPath(x *exchange) (*customer, error) {
	s.ledger.settle(s.time())
	if c := s.ledger.find(x.pathText("external_user_id")); c != nil {
		return c, nil
	}
	return nil, errNoCustomer
}

func (s *Server) getCustomer(x *exchange) (reply, error) {
	c, err := s.customerInPath(x)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, c.wire())
}

// ensureCustomer makes a customer that is not there.
func (s *Server) ensureCustomer(x *exchange) (reply, error) {
	in, err := decodeOptional[api.NewCustomer](x)
	if err != nil {
		return reply{}, err
	}
	id := x.pathText("external_user_id")
	if err := validateCustomer(id); err != nil {
		return reply{}, err
	}
	if err := checkNote(nil, in.Metadata); err != nil {
		return reply{}, err
	}
	c, created := s.ledger.ensure(id, s.time())
	if in.Metadata != nil {
		c.metadata = in.Metadata
	}
	return jsonReply(createdOr(created), c.wire())
}

// changeCustomer replaces a customer's metadata.
func (s *Server) changeCustomer(x *exchange) (reply, error) {
	in, err := decode[api.CustomerChange](x)
	if err != nil {
		return reply{}, err
	}
	if !validName200(x.pathText("external_user_id")) {
		return reply{}, errNoCustomer
	}
	if err := checkNote(nil, in.Metadata); err != nil {
		return reply{}, err
	}
	c, err := s.customerInPath(x)
	if err != nil {
		return reply{}, err
	}
	c.metadata = in.Metadata
	return jsonReply(http.StatusOK, c.wire())
}

// listCreditTypes lists the credit types, oldest first.
func (s *Server) listCreditTypes(x *exchange) (reply, error) {
	p, err := x.page(isNumber)
	if err != nil {
		return reply{}, err
	}
	all := make([]int, 0, len(s.ledger.types))
	for i := min(int(p.number()), len(s.ledger.types)); i < len(s.ledger.types); i++ {
		all = append(all, i)
	}
	return listReply(p, all, func(i int) api.CreditType { return s.ledger.types[i] }, func(i int) string { return strconv.Itoa(i + 1) })
}

// declareCreditType makes a credit type. One that is there never changes.
func (s *Server) declareCreditType(x *exchange) (reply, error) {
	in, err := decodeOptional[api.NewCreditType](x)
	if err != nil {
		return reply{}, err
	}
	name := x.pathText("name")
	if !validCreditType(name) {
		return reply{}, invalidRequest("credit_type", "is a name of 1 to 64 characters")
	}
	t, created := s.ledger.declare(name, in.AllowNegative, s.time())
	if t.AllowNegative != in.AllowNegative {
		return reply{}, refuse(api.CodeConflict, "this credit type is declared otherwise, and never changes").
			with("allow_negative", t.AllowNegative)
	}
	return jsonReply(createdOr(created), t)
}
