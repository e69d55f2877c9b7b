package openai_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/openai"
	"github.com/actionpulse/actionpulse/internal/openai/openaitest"
)

// hang is the URL of a server that hears and does not answer.
func hang(t *testing.T) string {
	t.Helper()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	return s.URL
}

// TestPatience: while a provider asks for patience it is not called, and who
// would call hears how long that is.
func TestPatience(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		s := openaitest.New(t, openaitest.Reply{Status: status, Header: map[string]string{"Retry-After": "10"}}, openaitest.Reply{Body: plain})
		var now atomic.Int64
		clock := func() time.Time { return start.Add(time.Duration(now.Load())) }
		p := openai.New(openai.Params{HTTP: callhttp.New(callhttp.Params{AllowPrivate: true}), Now: clock}).Open(model.Connection{BaseURL: s.URL})
		if _, e, _ := complete(t, p, ask(false)); e == nil || e.Outcome != model.Refused || e.After != 10*time.Second {
			t.Fatalf("%+v", e)
		}
		now.Store(int64(4 * time.Second))
		if _, e, _ := complete(t, p, ask(false)); e == nil || e.Outcome != model.NotSent || !e.Retryable || e.After != 6*time.Second {
			t.Errorf("%+v", e)
		}
		if n := len(s.Requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
		now.Store(int64(10 * time.Second))
		if c, e, _ := complete(t, p, ask(false)); e != nil || c.Text != "Hello" {
			t.Errorf("%+v", e)
		}
	}
	// A Retry-After of another answer keeps nobody away.
	s := openaitest.New(t, openaitest.Reply{Status: 500, Header: map[string]string{"Retry-After": "10"}}, openaitest.Reply{Body: plain})
	p := open(s, model.Connection{})
	if _, e, _ := complete(t, p, ask(false)); e == nil || e.After != 10*time.Second {
		t.Fatalf("%+v", e)
	}
	if _, e, _ := complete(t, p, ask(false)); e != nil {
		t.Errorf("%+v", e)
	}
}

// TestMaxConcurrent: a call waits for a place, and says when there was none.
func TestMaxConcurrent(t *testing.T) {
	t.Parallel()
	var under, served, tooMany atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := under.Add(1); n > 2 {
			tooMany.Store(n)
		}
		served.Add(1)
		under.Add(-1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(plain))
	}))
	t.Cleanup(s.Close)
	adapter := openai.New(openai.Params{HTTP: callhttp.New(callhttp.Params{AllowPrivate: true}), Now: time.Now})
	p := adapter.Open(model.Connection{BaseURL: s.URL, MaxConcurrent: 2})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, e, _ := complete(t, p, ask(false)); e != nil {
				t.Error(e)
			}
		})
	}
	all.Wait()
	if served.Load() != 20 || tooMany.Load() != 0 {
		t.Errorf("%d calls, %d at once", served.Load(), tooMany.Load())
	}

	p = adapter.Open(model.Connection{BaseURL: hang(t), MaxConcurrent: 1})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan *model.Error)
	go func() {
		_, e, _ := completeWithin(t, ctx, p, ask(false))
		ended <- e
	}()
	var second *model.Error
	for second == nil || second.Outcome != model.NotSent { // until the first one has its place
		short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, second, _ = completeWithin(t, short, p, ask(false))
		stop()
	}
	if !second.Retryable || second.Message != "the time was over before it was the call's turn: the provider's limit max_concurrent" {
		t.Errorf("%+v", second)
	}
	cancel()
	if e := <-ended; e == nil {
		t.Error("the first was answered")
	}
}

// TestRequestsPerMinute: the second call of a minute waits, and does not go
// out when its time ends before its turn.
func TestRequestsPerMinute(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t, openaitest.Reply{Body: plain})
	p := open(s, model.Connection{RequestsPerMinute: 1})
	if _, e, _ := complete(t, p, ask(false)); e != nil {
		t.Fatal(e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, e, _ := completeWithin(t, ctx, p, ask(false))
	if e == nil || e.Outcome != model.NotSent || !e.Retryable || e.Message != "the time was over before it was the call's turn: the provider's limit requests_per_minute" {
		t.Errorf("%+v", e)
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}
