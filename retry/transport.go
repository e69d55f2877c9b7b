package retry

import (
	"context"
	"net/http"
)

// The headers that are read and sent.
const (
	headerKey         = "Idempotency-Key"
	headerShouldRetry = "X-Should-Retry"
	headerRetryAfter  = "Retry-After"
)

// DefaultMaxBody is the default of [Transport.MaxBody]: 8 MiB.
const DefaultMaxBody = 8 << 20

// Transport is an [http.RoundTripper] that repeats requests by the table.
type Transport struct {
	// Base makes the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
	// Policy bounds the repeats of a request, as for [Do].
	Policy Policy
	// Kind says of which kind a request is whose context does not; nil means
	// KindOf.
	Kind func(*http.Request) Kind
	// Lanes are shared between transports that use the same keys; nil means
	// that this transport has its own.
	Lanes *Lanes
	// Refresh returns a new access token in place of one that has expired; nil
	// means that 401 is final.
	Refresh func(ctx context.Context, rejected string) (token string, err error)
	// MaxBody is up to which size, in bytes, a body without GetBody is kept for
	// repeats; 0 means DefaultMaxBody.
	MaxBody int64
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(request)
}

type attemptsKey struct{}

// Attempts returns how often the request of an answer was made, 0 if the
// answer is not from a [Transport].
func Attempts(response *http.Response) int {
	if response == nil || response.Request == nil {
		return 0
	}
	n, _ := response.Request.Context().Value(attemptsKey{}).(int)
	return n
}
