package actionpulse

import (
	"context"
	"net/url"

	"github.com/actionpulse/actionpulse/api"
)

// IdempotencyKeys tell what keys of Execute, TopUp, Charge and Adjust name.
type IdempotencyKeys struct{ link *link }

// Get returns the unit of work that a key names, and its state; not_found if
// it was never used, or only by requests that were refused. After an outcome
// that is unknown it says whether the work was done.
func (k *IdempotencyKeys) Get(ctx context.Context, key string) (*api.IdempotencyKey, error) {
	return fetch[api.IdempotencyKey](ctx, k.link, reads("findIdempotencyKey", "/v1/idempotency-keys").ask(url.Values{"key": {key}}))
}
