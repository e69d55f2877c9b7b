package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// session is a server that accepts the newest token only, and the refreshes of
// its client.
type session struct {
	mu sync.Mutex
	// newest is the number of the token in force.
	newest    int
	refreshed []string
	tokens    []string
	bodies    []string
	// hold, if set, keeps a refresh until it is closed.
	hold chan struct{}
	err  error
	// deaf never accepts a token.
	deaf bool
}

func (s *session) RoundTrip(request *http.Request) (*http.Response, error) {
	b := play(reply{status: 200})
	if g := do(b, request); g.err != nil {
		return nil, g.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token := request.Header.Get("Authorization")
	s.tokens = append(s.tokens, token)
	s.bodies = append(s.bodies, b.sent[0].Body)
	if s.deaf || token != fmt.Sprintf("Bearer t%d", s.newest) {
		return reply{status: 401, code: "token_expired"}.response(request), nil
	}
	return reply{status: 200}.response(request), nil
}

func (s *session) refresh(ctx context.Context, rejected string) (string, error) {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshed = append(s.refreshed, rejected)
	if _, limited := ctx.Deadline(); !limited || ctx.Err() != nil {
		return "", errors.New("the context has ended, or has no limit")
	}
	return fmt.Sprintf("t%d", s.newest), s.err
}

func (s *session) call(t *testing.T, transport *retry.Transport, token string) (status, attempts int) {
	t.Helper()
	request := newRequest(t, retry.Mutation, strings.NewReader("content"))
	request.Header.Set("Authorization", "Bearer "+token)
	g := do(transport, request)
	if g.err != nil {
		t.Error(g.err)
	}
	return g.status, g.attempts
}

// TestRefresh: an expired token is renewed once, which is no attempt and is
// allowed for every kind of request; later requests have the new one, however
// often it has changed since.
func TestRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &session{newest: 1}
		start := time.Now()
		transport := &retry.Transport{Base: s, Policy: retry.Policy{MaxAttempts: 1}, Refresh: s.refresh}
		for _, newest := range []int{1, 1, 2, 2, 3, 3} {
			s.newest = newest
			if status, attempts := s.call(t, transport, "t0"); status != 200 || attempts != 1 {
				t.Errorf("got %d after %d attempts", status, attempts)
			}
		}
		if status, _ := s.call(t, transport, "t2"); status != 200 {
			t.Errorf("a token in between: %d", status)
		}
		want := []string{
			"Bearer t0", "Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2", "Bearer t2", "Bearer t3", "Bearer t3", "Bearer t3",
		}
		if !slices.Equal(s.tokens, want) || !slices.Equal(s.refreshed, []string{"t0", "t1", "t2"}) || time.Since(start) != 0 {
			t.Errorf("sent %q, refreshed %q, took %v", s.tokens, s.refreshed, time.Since(start))
		}
		if slices.ContainsFunc(s.bodies, func(b string) bool { return b != "content" }) {
			t.Errorf("sent %q", s.bodies)
		}
	})
}

// TestRefreshShared: those whose token expired at the same time share one
// refresh, and one who leaves does not end it for the others.
func TestRefreshShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &session{newest: 1, hold: make(chan struct{})}
		transport := &retry.Transport{Base: s, Refresh: s.refresh}
		left := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		first := make(chan error)
		go func() {
			request := newRequest(t, retry.Read, nil).WithContext(ctx)
			request.Header.Set("Authorization", "Bearer t0")
			g := do(transport, request)
			if g.err == nil && g.status != http.StatusOK {
				g.err = fmt.Errorf("got %d", g.status)
			}
			first <- g.err
		}()
		synctest.Wait()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if status, _ := s.call(t, transport, "t0"); status != 200 {
					t.Errorf("got %d", status)
				}
			})
		}
		synctest.Wait()
		cancel(left)
		if err := <-first; err == nil {
			t.Error("the one who left got an answer")
		}
		close(s.hold)
		all.Wait()
		if !slices.Equal(s.refreshed, []string{"t0"}) {
			t.Errorf("refreshed %q", s.refreshed)
		}
	})
}

// TestRefreshFinal: the second 401 of a request, one after a refresh that
// failed, one with another code or credential, and one of a body that is gone
// are final.
func TestRefreshFinal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		session   *session
		auth      string
		max       int64
		sent      int
		refreshed int
	}{
		{"again", &session{newest: 1, deaf: true}, "Bearer t0", 0, 2, 1},
		{"failed", &session{newest: 1, err: errors.New("the session has ended")}, "Bearer t0", 0, 1, 1},
		{"the same token", &session{newest: 0, deaf: true}, "Bearer t0", 0, 1, 1},
		{"no bearer", &session{newest: 1}, "Basic dDA6dDA=", 0, 1, 0},
		{"large body", &session{newest: 1}, "bearer t0", 3, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := &retry.Transport{Base: c.session, Refresh: c.session.refresh, MaxBody: c.max}
			request := newRequest(t, retry.Read, strings.NewReader("content"))
			request.GetBody = nil
			request.Header.Set("Authorization", c.auth)
			g := do(transport, request)
			if g.err != nil || g.status != http.StatusUnauthorized || !strings.Contains(g.text, "token_expired") || g.attempts != 1 {
				t.Errorf("%s: got %+v", c.name, g)
			}
			if len(c.session.tokens) != c.sent || len(c.session.refreshed) != c.refreshed {
				t.Errorf("%s: sent %d times, refreshed %d times", c.name, len(c.session.tokens), len(c.session.refreshed))
			}
		})
	}
	b := play(reply{status: 401, code: "unauthenticated"})
	transport := &retry.Transport{Base: b, Refresh: func(context.Context, string) (string, error) {
		t.Error("a token that is not known was refreshed")
		return "t1", nil
	}}
	if g := do(transport, newRequest(t, retry.Read, nil)); g.err != nil || len(b.sent) != 1 {
		t.Errorf("%d attempts, %v", len(b.sent), g.err)
	}
}
