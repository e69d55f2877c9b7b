package sendhook_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/sendhook"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// serve starts a receiver and counts its requests.
func serve(t *testing.T, handle http.HandlerFunc) (url string, count *atomic.Int64) {
	t.Helper()
	count = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, count
}

func sender(t *testing.T, p sendhook.Params) *sendhook.Sender {
	t.Helper()
	s := sendhook.New(p)
	t.Cleanup(s.Close)
	return s
}

func TestSend(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != `{"a": 1}` {
			t.Errorf("body %q, %v", body, err)
		}
		got <- r
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s := sender(t, sendhook.Params{AllowPrivate: true, Agent: "test"})
	r := s.Send(t.Context(), webhook.Request{URL: url + "/hook", ID: "msg_1", Timestamp: "12", Signature: "v1,x v1,y", Body: []byte(`{"a": 1}`)})
	if r.Err != nil || r.Status != 503 || r.RetryAfter != "7" {
		t.Errorf("%+v", r)
	}
	request := <-got
	for name, want := range map[string]string{
		"webhook-id": "msg_1", "webhook-timestamp": "12", "webhook-signature": "v1,x v1,y", "content-type": "application/json", "user-agent": "test",
	} {
		if have := request.Header.Get(name); have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
	if request.Method != "POST" || request.URL.Path != "/hook" {
		t.Errorf("%s %s", request.Method, request.URL)
	}
}

// TestPrivateAddressesAreRefused: nothing is connected to, whatever the URL
// calls it.
func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	url, count := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	s := sender(t, sendhook.Params{})
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f000001", "127.1"} {
		r := s.Send(t.Context(), webhook.Request{URL: "http://" + host + ":" + port})
		if r.Err == nil {
			t.Errorf("%s was answered with %d", host, r.Status)
			continue
		}
		if strings.Contains(r.Err.Error(), port) {
			t.Errorf("%s: %q shows where it was to go", host, r.Err)
		}
	}
	for _, url := range []string{"http://169.254.169.254/latest/meta-data", "http://10.0.0.1", "http://[fd00:ec2::254]/"} {
		if r := s.Send(t.Context(), webhook.Request{URL: url}); r.Err == nil || r.Err.Error() != "the address is not one of the internet" {
			t.Errorf("%s: %+v", url, r)
		}
	}
	if n := count.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// TestRedirectsAreNotFollowed: the answer is the redirect.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	target, count := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, status := range []int{301, 302, 303, 307, 308} {
		url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, status) })
		if r := sender(t, sendhook.Params{AllowPrivate: true}).Send(t.Context(), webhook.Request{URL: url}); r.Err != nil || r.Status != status {
			t.Errorf("%d: %+v", status, r)
		}
	}
	if n := count.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestAnAttemptEnds: neither silence nor an answer without end keeps it.
func TestAnAttemptEnds(t *testing.T) {
	t.Parallel()
	silent, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := sender(t, sendhook.Params{AllowPrivate: true, Timeout: 50 * time.Millisecond})
	if r := s.Send(t.Context(), webhook.Request{URL: silent}); r.Err == nil || r.Err.Error() != "there was no answer in time" {
		t.Errorf("silence: %+v", r)
	}
	endless, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r := sender(t, sendhook.Params{AllowPrivate: true}).Send(ctx, webhook.Request{URL: endless}); r.Err != nil || r.Status != 200 {
		t.Errorf("an endless answer: %+v", r)
	}
}

func TestErrorsDoNotShowTheURL(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String() + "/secret"
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s := sender(t, sendhook.Params{AllowPrivate: true})
	for _, one := range []string{url, "http://nowhere.invalid/secret", "http://a\x7f/secret"} {
		if r := s.Send(t.Context(), webhook.Request{URL: one}); r.Err == nil || strings.Contains(r.Err.Error(), "secret") {
			t.Errorf("%s: %+v", one, r)
		}
	}
}
