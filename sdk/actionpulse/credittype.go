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

// Declare makes a credit type, or changes what it allows. It is not repeated
// by itself: a repeat that comes late would undo what another has declared
// since.
func (c *CreditTypes) Declare(ctx context.Context, name string, n api.NewCreditType) (*api.CreditType, error) {
	return fetch[api.CreditType](ctx, c.link, changes("declareCreditType", http.MethodPut, "/v1/credit-types/{name}", name).with(n))
}
