package retry

import (
	"context"
	"net/http"
)

// The headers that are read and sent.
const (
	headerKey         = "Idempotency-Key"
	headerOtherKey    = "X-Idempotency-Key"
	headerShouldRetry = "X-Should-Retry"
	headerRetryAfter  = "Retry-After"
)

// DefaultMaxBody is the default of [Transport.MaxBody]: 8 MiB, which is more
// than the server takes.
const DefaultMaxBody = 8 << 20

// Transport is an [http.RoundTripper] that repeats requests by the table, each
// with the same body and the same headers. It must not be changed once it is in
// use, nor copied, and is safe for concurrent use.
//
// What it returns: the last answer and no error if there was one, whatever its
// status; else an [*Error]; else the cause of the request's context if that
// ended it, or of a body that could not be read. Of an answer with a status of
// 400 or more up to 1 MiB has been read to find the code in it, and all of it
// can be read again. One with a lower status is handed on unread: if its body
// is cut short, it is the caller who hears of it, and no repeat is made.
// [Do] around request and reading covers that.
//
// What it never does: it does not change the request that it is given; it does
// not follow redirects, which http.Client does; it does not repeat a [Mutation]
// on its own unless the server has said that nothing was done; it does not
// begin a wait that the budget or the deadline of the context, and so
// http.Client.Timeout, would end. Both are for all attempts together; a limit
// for one is for Base to set, such as http.Transport.ResponseHeaderTimeout.
//
// net/http itself delivers a request with an Idempotency-Key a second time when
// a connection that it uses again breaks. Transport keeps it from that, so that
// all repeats are counted and wait as they should. What remains is that it
// sends again what has not been written at all, and, uncounted, a GET, HEAD or
// OPTIONS.
type Transport struct {
	// Base makes the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
	// Policy bounds the repeats of a request, as for [Do]. A request that waits
	// for others in its lane spends its budget, too.
	Policy Policy
	// Kind says of which kind a request is whose context does not say it; nil
	// means KindOf.
	Kind func(*http.Request) Kind
	// Lanes are to be shared by transports that use the same keys; nil means
	// that this transport has its own.
	Lanes *Lanes
	// Refresh returns a new access token in place of one that was rejected with
	// 401 token_expired; nil means that 401 is final. It is called at most once
	// for a request and never twice at a time for a token, with a context that
	// does not end with the request's but after a minute. The request is then
	// made again at once, which is no attempt, and later requests that are given
	// the old token are sent with the new one. After an error, which is for
	// Refresh to report, the 401 is final.
	Refresh func(ctx context.Context, rejected string) (token string, err error)
	// MaxBody is up to which size, in bytes, a body without GetBody is read into
	// memory before the first attempt; 0 means DefaultMaxBody. A request with a
	// larger one is made once and never repeated: an answer is then returned as
	// it is, and the reason of an [*Error] says so.
	MaxBody int64

	own      Lanes
	renewals renewals
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	x := exchange{
		base: t.Base, request: request, kind: t.kind(request), lanes: t.Lanes,
		series: t.Policy.begin(), refresh: t.Refresh, renewals: &t.renewals,
	}
	if x.base == nil {
		x.base = http.DefaultTransport
	}
	if x.lanes == nil {
		x.lanes = &t.own
	}
	limit := t.MaxBody
	if limit <= 0 {
		limit = DefaultMaxBody
	}
	var err error
	if x.body, err = newPayload(request.Context(), request, limit); err != nil {
		return nil, err
	}
	defer x.close()
	return x.run(request.Context())
}

func (t *Transport) kind(request *http.Request) Kind {
	if k, ok := kindIn(request.Context()); ok {
		return k
	}
	if t.Kind != nil {
		return t.Kind(request)
	}
	return KindOf(request)
}

type attemptsKey struct{}

// Attempts returns how many attempts it took to get an answer, 0 if it is not
// from a [Transport]. After redirects it is those of the last request.
func Attempts(response *http.Response) int {
	if response == nil || response.Request == nil {
		return 0
	}
	n, _ := response.Request.Context().Value(attemptsKey{}).(int)
	return n
}
