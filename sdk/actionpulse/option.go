package actionpulse

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// Option changes how a client speaks to the server.
type Option func(*settings)

// settings are what options change.
type settings struct {
	client   http.Client
	policy   retry.Policy
	lanes    *retry.Lanes
	agent    string
	log      *slog.Logger
	tokens   api.Tokens
	onTokens func(api.Tokens)
	newKey   func() string
}

// now is the clock of the policy.
func (s *settings) now() time.Time {
	if s.policy.Now != nil {
		return s.policy.Now()
	}
	return time.Now()
}

// sleep waits as the policy does; it returns the cause when ctx is done first.
func (s *settings) sleep(ctx context.Context, d time.Duration) error {
	if s.policy.Sleep != nil {
		return s.policy.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// WithHTTPClient takes the transport, the cookie jar and the timeout of c,
// which is not changed. Its timeout then bounds a call with all its repeats
// and waits; without this option only the context does.
func WithHTTPClient(c *http.Client) Option {
	return func(s *settings) { s.client = *c }
}

// WithTransport sends each attempt by t.
func WithTransport(t http.RoundTripper) Option {
	return func(s *settings) { s.client.Transport = t }
}

// WithRetry bounds repeats, and sets their clock and their waits; the zero
// policy is the default. WithRetry(retry.Policy{MaxAttempts: 1}) repeats
// nothing.
func WithRetry(p retry.Policy) Option {
	return func(s *settings) { s.policy = p }
}

// WithLanes shares l with other clients, and transports of package retry, that
// send the same key: after a failure the requests of all of them go one at a
// time until one succeeds.
func WithLanes(l *retry.Lanes) Option {
	return func(s *settings) { s.lanes = l }
}

// WithLogger reports each repeat as a warning; nothing is logged without it.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) { s.log = l }
}

// WithUserAgent puts the name and version of the caller's program, like
// shop/1.4, before this package's own in User-Agent.
func WithUserAgent(name string) Option {
	return func(s *settings) { s.agent = name + " " + userAgent }
}

// WithNewKey mints the keys of calls without [WithKey] by mint, in place of
// [NewKey].
func WithNewKey(mint func() string) Option {
	return func(s *settings) { s.newKey = mint }
}

// WithTokens gives an [App] the tokens of an earlier login.
func WithTokens(t api.Tokens) Option {
	return func(s *settings) { s.tokens = t }
}

// OnTokens is told of the tokens of an [App] whenever they are replaced, by
// Login, Refresh or a token that has expired, before they are used: the
// refresh token from before is spent then, and only these go on. It is called
// by one goroutine at a time, and must not itself log in, refresh or log out.
// After Logout, and when the session has ended, it is told of no tokens.
func OnTokens(keep func(api.Tokens)) Option {
	return func(s *settings) { s.onTokens = keep }
}

// userAgent is what User-Agent says without an option.
const userAgent = "actionpulse-go/1"
