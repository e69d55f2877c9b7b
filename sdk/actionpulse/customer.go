package actionpulse

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Customers are those whom credits are kept for, each by your own id of 1 to
// 200 characters, which may hold anything but control characters.
type Customers struct{ link *link }

const customerPath = "/v1/customers/{external_user_id}"

// List returns a page of the project's customers.
func (c *Customers) List(ctx context.Context, p Page) (*api.List[api.Customer], error) {
	return list[api.Customer](ctx, c.link, reads("listCustomers", "/v1/customers").ask(p.query()))
}

// All yields every customer from p on.
func (c *Customers) All(ctx context.Context, p Page) iter.Seq2[api.Customer, error] {
	return all(p, func(p Page) (*api.List[api.Customer], error) { return c.List(ctx, p) })
}

// Get returns a customer with all balances; customer_not_found if there is
// none.
func (c *Customers) Get(ctx context.Context, customer string) (*api.Customer, error) {
	return fetch[api.Customer](ctx, c.link, reads("getCustomer", customerPath, customer))
}

// Ensure makes a customer, or replaces the metadata of one if there is some in
// n. It is not repeated by itself: a repeat that comes late would undo what
// another has written since.
func (c *Customers) Ensure(ctx context.Context, customer string, n api.NewCustomer) (*api.Customer, error) {
	return fetch[api.Customer](ctx, c.link, changes("ensureCustomer", http.MethodPut, customerPath, customer).with(n))
}

// Change replaces the metadata of a customer; customer_not_found if there is
// none.
func (c *Customers) Change(ctx context.Context, customer string, change api.CustomerChange) (*api.Customer, error) {
	return fetch[api.Customer](ctx, c.link, changes("changeCustomer", http.MethodPatch, customerPath, customer).with(change))
}

// Balances returns what a customer has, or had at a time; the zero time means
// now.
func (c *Customers) Balances(ctx context.Context, customer string, at time.Time) (*api.Balances, error) {
	q := Page{}.query()
	setTime(q, "at", at)
	return fetch[api.Balances](ctx, c.link, reads("getBalances", customerPath+"/balance", customer).ask(q))
}

// Grants returns a page of what is left of topups that expire or have a
// priority of their own.
func (c *Customers) Grants(ctx context.Context, customer string, p Page) (*api.List[api.Grant], error) {
	return list[api.Grant](ctx, c.link, reads("listGrants", customerPath+"/grants", customer).ask(p.query()))
}

// AllGrants yields every grant from p on.
func (c *Customers) AllGrants(ctx context.Context, customer string, p Page) iter.Seq2[api.Grant, error] {
	return all(p, func(p Page) (*api.List[api.Grant], error) { return c.Grants(ctx, customer, p) })
}
