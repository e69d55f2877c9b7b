package retry_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// TestLanesImpatience: a turn that cannot come in time is not waited for, and a
// request that was never made says so; a Retry-After without reason does not
// close a lane for longer than the budget.
func TestLanesImpatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := steady
		policy.Budget = time.Minute
		b := play(reply{status: 429, header: map[string]string{"Retry-After": "86400"}})
		transport := &retry.Transport{Base: b, Policy: policy}
		status, err := send(transport, newRequest(t, retry.Event, nil))
		if err != nil || status != http.StatusTooManyRequests || time.Since(b.start) != 0 {
			t.Fatalf("got %d, %v", status, err)
		}
		ctx, cancel := context.WithTimeout(retry.WithKind(t.Context(), retry.Event), 30*time.Second)
		defer cancel()
		_, err = send(transport, newRequest(t, retry.Event, nil).WithContext(ctx))
		e, ok := errors.AsType[*retry.Error](err)
		if !ok || e.Attempts != 0 || !e.Verdict.Retry || time.Since(b.start) != 0 || len(b.sent) != 1 {
			t.Errorf("got %v after %v and %d requests", err, time.Since(b.start), len(b.sent))
		}
		status, err = send(transport, newRequest(t, retry.Event, nil))
		if err != nil || status != http.StatusTooManyRequests || time.Since(b.start) != time.Minute || len(b.sent) != 2 {
			t.Errorf("got %d, %v after %v", status, err, time.Since(b.start))
		}
	})
}

// TestLanesQueueEnds: a budget that ends in the queue is an end, too, and the
// last answer comes with it.
func TestLanesQueueEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		n := 0
		transport := &retry.Transport{Policy: retry.Policy{Budget: 10 * time.Second, Delays: steady.Delays}, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			n++
			last := n > 2
			mu.Unlock()
			if last {
				<-release
				return reply{status: 202}.response(r), nil
			}
			return reply{status: 500, code: "internal"}.response(r), nil
		})}
		start := time.Now()
		var all sync.WaitGroup
		statuses := make([]int, 2)
		for i := range 2 {
			all.Go(func() {
				g := do(transport, newRequest(t, retry.Event, nil))
				if g.err != nil || g.attempts != 2-i {
					t.Errorf("%d: %d attempts, %v", i, g.attempts, g.err)
					return
				}
				statuses[i] = g.status
				if i == 1 {
					if took := time.Since(start); took != 10*time.Second || g.text != (reply{code: "internal"}).text() {
						t.Errorf("took %v", took)
					}
					close(release)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if !slices.Equal(statuses, []int{202, 500}) || n != 3 {
			t.Errorf("got %v after %d requests", statuses, n)
		}
	})
}

// TestLanesPanic: a request that panics does not keep its lane.
func TestLanesPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		transport := &retry.Transport{Policy: retry.Policy{MaxAttempts: 1, Delays: steady.Delays}, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if n++; n == 2 {
				panic("a bug")
			}
			return reply{status: 500}.response(r), nil
		})}
		for range 3 {
			func() {
				defer func() { recover() }() //nolint:errcheck // it is the test's own
				if _, err := send(transport, newRequest(t, retry.Event, nil)); err != nil {
					t.Error(err)
				}
			}()
		}
		if n != 3 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestLanesOpen: an answer about one object narrows nothing, and a token is
// renewed outside of its lane: Refresh may use it.
func TestLanesOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := steady
		policy.MaxAttempts = 1
		b := play(
			reply{status: 409, code: "privacy_job_active"}, reply{status: 500, code: "internal"},
			reply{status: 401, code: "token_expired"}, reply{status: 200}, reply{status: 200},
		)
		transport := &retry.Transport{Base: b, Policy: policy}
		transport.Refresh = func(ctx context.Context, _ string) (string, error) {
			_, err := send(transport, newRequest(t, retry.Read, nil).WithContext(ctx))
			return "aps_2", err
		}
		for range 3 {
			if _, err := send(transport, newRequest(t, retry.Read, nil)); err != nil {
				t.Error(err)
			}
		}
		if want := []time.Duration{0, 0, 1e9, 1e9, 1e9}; !slices.Equal(b.at(), want) {
			t.Errorf("requests at %v, want %v", b.at(), want)
		}
	})
}
