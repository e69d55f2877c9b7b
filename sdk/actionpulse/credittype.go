package actionpulse

import (
	"context"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// CreditTypes are the kinds of credits of the project.
type CreditTypes struct{ link *link }

// List returns a page of credit types.
func (c *CreditTypes) List(ctx context.Context, p Page) (*api.List[api.CreditType], error) {
	return list[api.CreditType](ctx, c.link, reads("listCreditTypes", "/v1/credit-types").ask(p.query()))
}

// All yields every credit type from p on.
func (c *CreditTypes) All(ctx context.Context, p Page) iter.Seq2[api.CreditType, error] {
	return all(p, func(p Page) (*api.List[api.CreditType], error) { return c.List(ctx, p) })
}

// Declare makes a credit type. It is refused with conflict if there is one that
// allows something else. It is repeated like work under a key: a type never
// changes, so that its name and what it allows say which one is meant, and a
// repeat returns it.
func (c *CreditTypes) Declare(ctx context.Context, name string, n api.NewCreditType) (*api.CreditType, error) {
	request := changes("declareCreditType", http.MethodPut, "/v1/credit-types/{name}", name).byIdentity()
	return fetch[api.CreditType](ctx, c.link, request.with(n))
}
