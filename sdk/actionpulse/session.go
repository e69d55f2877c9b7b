package actionpulse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// ErrSessionEnded says that there is no refresh token to go on with: there was
// no login, it was refused, or it was spent and the answer was lost. It is
// wrapped by the error of the request that needed it.
var ErrSessionEnded = errors.New("there is no session to go on with: log in anew")

// refreshTimeout bounds a refresh, which does not end with the context of the
// call that has begun it: others wait for it, and an answer that is lost ends
// the session.
const refreshTimeout = 30 * time.Second

// session keeps the tokens of a user. A refresh token is sent once and never
// again, unless it is certain that it was not spent.
type session struct {
	link *link

	mu     sync.Mutex
	tokens api.Tokens
	// running is the refresh that is under way; nil if there is none.
	running *refreshing
	// failed is why the last refresh has brought no tokens; nil after one that
	// has.
	failed error

	// telling keeps the calls of OnTokens in order. It is taken before mu.
	telling sync.Mutex
}

// refreshing is one refresh. Its results are read when done is closed.
type refreshing struct {
	done   chan struct{}
	tokens api.Tokens
	err    error
}

func (s *session) begin(l *link) {
	s.link, s.tokens = l, l.tokens
	l.whyRejected = s.why
}

// why says why requests are refused for want of a valid access token; nil if
// nothing is known of it.
func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && s.tokens.AccessToken == "" {
		return ErrSessionEnded
	}
	return s.failed
}

func (s *session) present() api.Tokens {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens
}

func (s *session) accessToken() string { return s.present().AccessToken }

// take replaces the tokens after their keeper has been told.
func (s *session) take(t api.Tokens) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.put(t)
}

// takeFor replaces the tokens if the refresh token is still the one that was
// spent: a login or a logout meanwhile counts for more.
func (s *session) takeFor(spent string, t api.Tokens) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if s.present().RefreshToken == spent {
		s.put(t)
	}
}

// put is called with telling held.
func (s *session) put(t api.Tokens) {
	if s.link.onTokens != nil && t != s.present() {
		s.link.onTokens(t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens, s.failed = t, nil
}

// replace returns the access token that has taken the place of a rejected
// one; it is retry.Transport's Refresh.
func (s *session) replace(ctx context.Context, rejected string) (string, error) {
	tokens, err := s.refresh(ctx, rejected)
	if err != nil {
		return "", err
	}
	return tokens.AccessToken, nil
}

// refresh returns the tokens that have taken the place of those with the
// rejected access token. However many ask at once, one request is made.
func (s *session) refresh(ctx context.Context, rejected string) (*api.Tokens, error) {
	s.mu.Lock()
	if s.running == nil && s.tokens.AccessToken != rejected && s.tokens.AccessToken != "" {
		defer s.mu.Unlock()
		return new(s.tokens), nil
	}
	r := s.running
	if r == nil {
		r = s.start(ctx, nil)
	}
	s.mu.Unlock()
	return r.wait(ctx)
}

// move spends the refresh token to work in an organization; empty means the
// present one. It waits for a refresh that is under way, which does not move.
func (s *session) move(ctx context.Context, organizationID string) (*api.Tokens, error) {
	s.mu.Lock()
	for s.running != nil {
		before := s.running
		s.mu.Unlock()
		if _, err := before.wait(ctx); err != nil {
			return nil, err
		}
		s.mu.Lock()
	}
	r := s.start(ctx, api.OptionalText(organizationID))
	s.mu.Unlock()
	return r.wait(ctx)
}

// start begins a refresh. It is called with mu held.
func (s *session) start(ctx context.Context, organizationID *string) *refreshing {
	r := &refreshing{done: make(chan struct{})}
	s.running = r
	go s.spend(context.WithoutCancel(ctx), r, api.Refresh{RefreshToken: s.tokens.RefreshToken, OrganizationID: organizationID})
	return r
}

// wait returns what came of a refresh, or the cause when ctx is done first.
func (r *refreshing) wait(ctx context.Context) (*api.Tokens, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.err != nil {
		return nil, r.err
	}
	return new(r.tokens), nil
}

// spend sends the refresh token, once, and publishes what came of it.
func (s *session) spend(ctx context.Context, r *refreshing, body api.Refresh) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	tokens, err := s.ask(ctx, body)
	if err == nil {
		r.tokens = *tokens
		s.takeFor(body.RefreshToken, *tokens)
	} else if r.err = err; errors.Is(err, ErrSessionEnded) {
		s.takeFor(body.RefreshToken, api.Tokens{})
	}
	s.mu.Lock()
	s.running, s.failed = nil, r.err
	s.mu.Unlock()
	close(r.done)
}

// ask makes the request of a refresh. The token may be sent again later only
// if it was certainly not spent: the server was not reached, or refused for
// its own reasons.
func (s *session) ask(ctx context.Context, body api.Refresh) (*api.Tokens, error) {
	if body.RefreshToken == "" {
		return nil, ErrSessionEnded
	}
	c := changes("refresh", http.MethodPost, "/api/v1/auth/refresh").with(body)
	c.open = true
	tokens, err := fetch[api.Tokens](ctx, s.link, c)
	if err == nil {
		return tokens, nil
	}
	refusal, ok := errors.AsType[*Error](err)
	if ok && refusal.Applied == AppliedNo && refusal.Status != http.StatusUnauthorized {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrSessionEnded, err)
}
