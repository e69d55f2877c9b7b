package retry

import (
	"context"
	"net/http"
)

type kindKey struct{}

// WithKind returns a context that says of which kind the requests made with it
// are. It wins over the header and over [Transport.Kind].
func WithKind(ctx context.Context, k Kind) context.Context {
	return context.WithValue(ctx, kindKey{}, k)
}

// kindIn returns the kind that the context of a request names.
func kindIn(ctx context.Context) (Kind, bool) {
	k, ok := ctx.Value(kindKey{}).(Kind)
	return k, ok
}

// KindOf returns the kind of a request: that of its context ([WithKind]), else
// Read for GET, HEAD and OPTIONS, Keyed for one with an Idempotency-Key that is
// not empty, and Mutation for all others. An intake request can only be told
// by its context: whether each item has an id is in the body.
func KindOf(r *http.Request) Kind {
	if k, ok := kindIn(r.Context()); ok {
		return k
	}
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return Read
	}
	if r.Header.Get(headerKey) != "" {
		return Keyed
	}
	return Mutation
}
