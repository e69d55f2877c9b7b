package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
)

// Customers manages customers and credit types. The errors are described where
// credit.Customers has these methods.
type Customers interface {
	Get(ctx context.Context, projectID, customer string) (credit.Customer, error)
	List(ctx context.Context, projectID string, before int64, limit int) ([]credit.Customer, error)
	Ensure(ctx context.Context, p credit.EnsureParams) (c credit.Customer, created bool, err error)
	SetMetadata(ctx context.Context, p credit.EnsureParams) (credit.Customer, error)
	ListTypes(ctx context.Context, projectID string, after int64, limit int) ([]credit.Type, error)
	DeclareType(ctx context.Context, projectID, name string, allowNegative bool) (t credit.Type, created bool, err error)
}

var listCustomersOperation = operation{
	id: "listCustomers", tag: tagCredits, summary: "List the customers of the project, latest first",
	params:  pageParams(),
	replies: replyOK("A page of customers.", api.List[api.Customer]{}),
}

func (s *service) listCustomers(x *exchange) (answer, error) {
	p, before, err := x.numberPage()
	if err != nil {
		return answer{}, err
	}
	all, err := s.Customers.List(x.r.Context(), x.caller.ProjectID, before, p.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, customerOf, func(c *credit.Customer) string { return strconv.FormatInt(c.Number, 10) })
}

// numberPage reads ?limit= and ?cursor= of a list that is in the order of
// numbers.
func (x *exchange) numberPage() (page, int64, error) {
	p, err := x.page()
	if err != nil {
		return page{}, 0, err
	}
	number, err := p.number()
	return p, number, err
}

var getCustomerOperation = operation{
	id: "getCustomer", tag: tagCredits, summary: "Get a customer with the balances",
	params:  []param{customerParam()},
	replies: replyOK("The customer.", api.Customer{}),
	errors:  codes(api.CodeCustomerNotFound),
}

func (s *service) getCustomer(x *exchange) (answer, error) {
	c, err := s.Customers.Get(x.r.Context(), x.caller.ProjectID, x.r.PathValue("external_user_id"))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, customerOf(&c))
}

var ensureCustomerOperation = operation{
	id: "ensureCustomer", tag: tagCredits, summary: "Make a customer that is not there",
	description: "A topup makes a customer, too. A repeat changes nothing but the metadata, if there is any in the body.",
	params:      []param{customerParam()}, request: api.NewCustomer{},
	replies: append(replyCreated("The customer was made.", api.Customer{}), replyOK("The customer was there.", api.Customer{})...),
	errors:  codes(api.CodePrivacyJobActive),
}

func (s *service) ensureCustomer(x *exchange) (answer, error) {
	in, err := decodeOptional[api.NewCustomer](x)
	if err != nil {
		return answer{}, err
	}
	c, created, err := s.Customers.Ensure(x.r.Context(), x.aboutCustomer(in.Metadata))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(createdOr(created), customerOf(&c))
}

// createdOr is 201 for what was made, else 200.
func createdOr(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (x *exchange) aboutCustomer(metadata map[string]json.RawMessage) credit.EnsureParams {
	return credit.EnsureParams{ProjectID: x.caller.ProjectID, Customer: x.r.PathValue("external_user_id"), Metadata: metadata}
}

var changeCustomerOperation = operation{
	id: "changeCustomer", tag: tagCredits, summary: "Replace the metadata of a customer",
	params: []param{customerParam()}, request: api.CustomerChange{},
	replies: replyOK("The customer.", api.Customer{}),
	errors:  codes(api.CodeCustomerNotFound, api.CodePrivacyJobActive),
}

func (s *service) changeCustomer(x *exchange) (answer, error) {
	in, err := decode[api.CustomerChange](x)
	if err != nil {
		return answer{}, err
	}
	c, err := s.Customers.SetMetadata(x.r.Context(), x.aboutCustomer(in.Metadata))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, customerOf(&c))
}

// customerOf is a customer as it is sent.
func customerOf(c *credit.Customer) api.Customer {
	out := api.Customer{Customer: c.ID, Metadata: c.Metadata, Balances: balancesOf(c.Balances), CreatedAt: api.TimeText(c.CreatedAt)}
	if out.Metadata == nil {
		out.Metadata = map[string]json.RawMessage{}
	}
	return out
}

var listCreditTypesOperation = operation{
	id: "listCreditTypes", tag: tagCredits, summary: "List the credit types of the project, oldest first",
	params:  pageParams(),
	replies: replyOK("A page of credit types.", api.List[api.CreditType]{}),
}

func (s *service) listCreditTypes(x *exchange) (answer, error) {
	p, after, err := x.numberPage()
	if err != nil {
		return answer{}, err
	}
	all, err := s.Customers.ListTypes(x.r.Context(), x.caller.ProjectID, after, p.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, creditTypeOf, func(t *credit.Type) string { return strconv.FormatInt(t.Number, 10) })
}

var declareCreditTypeOperation = operation{
	id: "declareCreditType", tag: tagCredits, summary: "Declare a credit type",
	description: "A topup makes one, too, that does not allow negative balances. A credit type never changes: a repeat that says otherwise is a conflict.",
	params:      []param{pathText("name", "The name, path-escaped: 1 to 64 characters.")}, request: api.NewCreditType{},
	replies: append(replyCreated("The credit type was made.", api.CreditType{}), replyOK("The credit type was there.", api.CreditType{})...),
	errors:  codes(api.CodeConflict),
}

func (s *service) declareCreditType(x *exchange) (answer, error) {
	in, err := decodeOptional[api.NewCreditType](x)
	if err != nil {
		return answer{}, err
	}
	t, created, err := s.Customers.DeclareType(x.r.Context(), x.caller.ProjectID, x.r.PathValue("name"), in.AllowNegative)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(createdOr(created), creditTypeOf(&t))
}

func creditTypeOf(t *credit.Type) api.CreditType {
	return api.CreditType{Name: t.Name, AllowNegative: t.AllowNegative, CreatedAt: api.TimeText(t.CreatedAt)}
}
