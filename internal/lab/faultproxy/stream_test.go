package faultproxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

// get asks the proxy for a path.
func get(t *testing.T, p *faultproxy.Proxy, path string, header http.Header) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestStreamPasses: an event is seen before the stream ends, and the server
// hears that the client has left.
func TestStreamPasses(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		if _, err := io.WriteString(w, "data: 1\n\n"); err != nil {
			t.Error(err)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
		close(left)
	}))
	t.Cleanup(server.Close)
	p := start(t, faultproxy.Options{Upstream: server.URL})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil || line != "data: 1\n" {
		t.Errorf("got %q, %v", line, err)
	}
	cancel()
	<-left
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
}

// TestHeaders: what is about one connection only does not pass, all else does;
// an Upgrade is refused.
func TestHeaders(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a server with an unknown certificate was asked")
	}))
	t.Cleanup(server.Close)
	p := start(t, faultproxy.Options{Upstream: server.URL})
	if r := post(t, p, "x"); r.err == nil {
		t.Errorf("an unknown certificate was trusted: %+v", r)
	}

	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := fmt.Fprintf(w, "%s %s %v %v", r.Host, r.URL, r.Header["X-Mine"], r.Header["X-Hop"]); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(plain.Close)
	p = start(t, faultproxy.Options{Upstream: plain.URL + "/base/", UpstreamHost: true})
	_, text := get(t, p, "/a?b=c", http.Header{"X-Mine": {"1"}, "X-Hop": {"2"}, "Connection": {"X-Hop"}})
	if want := strings.TrimPrefix(plain.URL, "http://") + " /base/a?b=c [1] []"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if status, _ := get(t, p, "/", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}); status != http.StatusNotImplemented {
		t.Errorf("an upgrade got %d", status)
	}
	if c := p.Counts(); c.Refused != 1 || c.Passed != 1 || c.Deliveries != 1 {
		t.Errorf("%+v", c)
	}
}

// TestReset: the head has come, the body has not.
func TestReset(t *testing.T) {
	t.Parallel()
	address, asked := upstream(t)
	p := start(t, faultproxy.Options{Faults: faultproxy.Faults{Reset: 1}, Upstream: address})
	if r := post(t, p, "x"); r.err == nil || asked.Load() != 1 || p.Counts().Reset != 1 {
		t.Errorf("got %+v, asked %d times", r, asked.Load())
	}
}

// TestReorder: a request that came first is delivered after one that came
// later; alone, it is delivered when its time is over.
func TestReorder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	held := make(chan struct{}, 1)
	p := start(t, faultproxy.Options{
		Faults: faultproxy.Faults{Reorder: 1, MaxReorder: time.Minute}, Upstream: server.URL,
		Match: func(r *http.Request) bool {
			if r.URL.Path == "/first" {
				held <- struct{}{}
			}
			return r.URL.Path == "/first"
		},
	})
	done := make(chan error, 1)
	go func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/first", nil)
		if err == nil {
			var response *http.Response
			if response, err = http.DefaultClient.Do(request); err == nil {
				err = response.Body.Close()
			}
		}
		done <- err
	}()
	<-held
	// The first may not be held yet; whatever comes later lets it go.
	for n := 0; ; n++ {
		get(t, p, fmt.Sprint("/later/", n), nil)
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		default:
			continue
		}
		break
	}
	mu.Lock()
	defer mu.Unlock()
	if order[0] == "/first" || p.Counts().Reorder != 1 {
		t.Errorf("delivered %v, %+v", order, p.Counts())
	}
}

// TestReorderAlone: a request that nobody overtakes is delivered when its time
// is over.
func TestReorderAlone(t *testing.T) {
	t.Parallel()
	address, asked := upstream(t)
	p := start(t, faultproxy.Options{Faults: faultproxy.Faults{Reorder: 1, MaxReorder: time.Millisecond}, Upstream: address})
	if r := post(t, p, "x"); r.status != 202 || asked.Load() != 1 || p.Counts().Reorder != 1 {
		t.Errorf("got %+v, asked %d times", r, asked.Load())
	}
}
