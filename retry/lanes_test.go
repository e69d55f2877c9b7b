package retry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// failing is a server that takes a second for each request, fails until a time,
// and notes how many requests it has at once.
type failing struct {
	start time.Time
	until time.Duration
	reply reply

	mu          sync.Mutex
	now, most   int
	ids         []string
	at          []time.Duration
	mostFailing int
}

func (f *failing) RoundTrip(request *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.now++
	since := time.Since(f.start)
	f.most = max(f.most, f.now)
	if since > 0 {
		f.mostFailing = max(f.mostFailing, f.now)
	}
	f.ids, f.at = append(f.ids, request.Header.Get("X-Id")), append(f.at, since)
	f.mu.Unlock()
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-request.Context().Done():
		err = request.Context().Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
	if err != nil {
		return nil, err
	}
	if since < f.until {
		if f.reply.err != nil {
			return nil, f.reply.err
		}
		return f.reply.response(request), nil
	}
	f.mostFailing = 0
	return reply{status: 202}.response(request), nil
}

func (f *failing) request(t *testing.T, id int) *http.Request {
	t.Helper()
	request := newRequest(t, retry.Event, nil)
	request.Header.Set("X-Id", strconv.Itoa(id))
	return request
}

// send makes a request and returns the status of the answer.
func send(transport *retry.Transport, request *http.Request) (int, error) {
	g := do(transport, request)
	return g.status, g.err
}

// TestLanes: requests that fail together come again one at a time, each after a
// wait that grows for all of them, and together once one has succeeded.
func TestLanes(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]reply{
		"internal": {status: 500, code: "internal"}, "lost": {err: io.EOF}, "proxy": {status: 502}, "unheard of": {status: 507},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &failing{start: time.Now(), until: 12 * time.Second, reply: r}
			transport := &retry.Transport{Base: f, Policy: steady}
			var all sync.WaitGroup
			for id := range 10 {
				all.Go(func() {
					status, err := send(transport, f.request(t, id))
					if name != "unheard of" && (err != nil || status != http.StatusAccepted) {
						t.Errorf("%s: got %d, %v", name, status, err)
					}
				})
			}
			all.Wait()
			// Ten at once; then one after 1, 2, 4 and 8 seconds, the last of which
			// succeeds and lets the others go.
			if name != "unheard of" {
				got := slices.Compact(slices.Clone(f.at))
				want := []time.Duration{0, 1100 * time.Millisecond, 3200 * time.Millisecond, 7300 * time.Millisecond, 15400 * time.Millisecond, 15500 * time.Millisecond}
				if !slices.Equal(got, want) || len(f.at) != 10+4+9 {
					t.Errorf("%s: %d requests at %v", name, len(f.at), got)
				}
			}
			// What is not repeated narrows the lane, too.
			if name == "unheard of" {
				if _, err := send(transport, f.request(t, 10)); err != nil || f.at[10] != 1100*time.Millisecond {
					t.Errorf("%s: the next at %v, %v", name, f.at[10:], err)
				}
			}
		})
	}
}

// TestLanesFair: who has waited longest is next, and who leaves is passed over,
// be it in the queue, in the rest of the lane or under way.
func TestLanesFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{start: time.Now(), until: time.Hour, reply: reply{status: 500, code: "internal"}}
		policy := steady
		policy.MaxAttempts = 1
		transport := &retry.Transport{Base: f, Policy: policy}
		if _, err := send(transport, f.request(t, 0)); err != nil {
			t.Fatal(err)
		}
		left := errors.New("the user left")
		var all sync.WaitGroup
		cancels := map[int]context.CancelCauseFunc{}
		for id := 1; id <= 6; id++ {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancels[id] = cancel
			all.Go(func() {
				_, err := send(transport, f.request(t, id).WithContext(retry.WithKind(ctx, retry.Event)))
				if gone := id == 1 || id == 2 || id == 4; gone != errors.Is(err, left) {
					t.Errorf("%d: %v", id, err)
				}
			})
			synctest.Wait()
		}
		<-time.After(500 * time.Millisecond)
		cancels[1](left) // it had the turn, and waited for the end of the rest
		cancels[4](left) // it was in the queue
		synctest.Wait()
		<-time.After(550 * time.Millisecond)
		cancels[2](left) // it is under way
		all.Wait()
		if !slices.Equal(f.ids, []string{"0", "2", "3", "5", "6"}) {
			t.Errorf("requests %v at %v", f.ids, f.at)
		}
		// One that was not heard says nothing: the next begins at once, and then
		// the waits grow.
		want := []time.Duration{0, 1100 * time.Millisecond, 1150 * time.Millisecond, 3250 * time.Millisecond, 7350 * time.Millisecond}
		if !slices.Equal(f.at, want) || f.mostFailing > 1 {
			t.Errorf("requests at %v, %d at once", f.at, f.mostFailing)
		}
	})
}

// TestLanesApart: another credential, another host and no credential have
// nothing to do with it; the parameter key is a credential, and transports that
// share lanes share it.
func TestLanesApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := steady
		policy.MaxAttempts = 1
		lanes := new(retry.Lanes)
		b := play(reply{status: 503})
		took := func(url, authorization string, l *retry.Lanes) time.Duration {
			request, err := http.NewRequestWithContext(t.Context(), "GET", url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if authorization != "" {
				request.Header.Set("Authorization", authorization)
			}
			start := time.Now()
			if _, err := send(&retry.Transport{Base: b, Policy: policy, Lanes: l}, request); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		const a, apart = "http://a.test/", "http://b.test/"
		for i, c := range []struct {
			url, authorization string
			lanes              *retry.Lanes
			want               time.Duration
		}{
			{a, "Bearer 1", lanes, 0},
			{a, "Bearer 1", lanes, time.Second},
			{a + "v1/other", "Bearer 1", lanes, 2 * time.Second},
			{a, "Bearer 2", lanes, 0},
			{apart, "Bearer 1", lanes, 0},
			{a, "", lanes, 0},
			{a, "", lanes, 0},
			{a, "Bearer 1", nil, 0},
			{a + "?key=3", "", lanes, 0},
			{a + "?v=1&key=3", "", lanes, time.Second},
			{a + "?key=4", "", lanes, 0},
		} {
			if got := took(c.url, c.authorization, c.lanes); got != c.want {
				t.Errorf("%d: waited %v, want %v", i, got, c.want)
			}
		}
	})
}

// TestLanesStragglers: what was under way when another failed does not open the
// lane by succeeding, and has no part in the growth of waits by failing.
func TestLanesStragglers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := map[string]time.Duration{}
		var mu sync.Mutex
		transport := &retry.Transport{Policy: retry.Policy{MaxAttempts: 1, Delays: steady.Delays}, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			id := r.Header.Get("X-Id")
			mu.Lock()
			at[id] = time.Since(start)
			mu.Unlock()
			switch id {
			case "slow success":
				<-time.After(300 * time.Millisecond)
				return reply{status: 200}.response(r), nil
			case "slow failure":
				<-time.After(400 * time.Millisecond)
			}
			return reply{status: 429, code: "rate_limited", header: map[string]string{"Retry-After": "5"}}.response(r), nil
		})}
		var all sync.WaitGroup
		begin := func(id string) {
			all.Go(func() {
				request := newRequest(t, retry.Event, nil)
				request.Header.Set("X-Id", id)
				if _, err := send(transport, request); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
			synctest.Wait()
		}
		begin("slow success")
		begin("slow failure")
		begin("failure")
		<-time.After(350 * time.Millisecond)
		begin("next")
		all.Wait()
		if at["failure"] != 0 || at["next"] != 5400*time.Millisecond {
			t.Errorf("requests at %v", at)
		}
	})
}
