package callhttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	step "github.com/actionpulse/actionpulse/internal/flow/step/http"
)

// serve starts a server and counts its requests.
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

// closing starts a server that answers the first request as one that keeps its
// connections, and reads each later one and closes the connection unanswered.
func closing(t *testing.T) (url string, count *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	count = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerFirst(conn, count)
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return "http://" + listener.Addr().String(), count
}

func answerFirst(conn net.Conn, count *atomic.Int64) {
	defer conn.Close() //nolint:errcheck // a test's
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		if count.Add(1) > 1 {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok")
	}
}

func client() *callhttp.Client {
	return callhttp.New(callhttp.Params{AllowPrivate: true, Agent: "test"})
}

// call makes a call and returns its failure.
func call(t *testing.T, ctx context.Context, c *callhttp.Client, r *step.Request) (*step.Response, *step.Error) { //nolint:revive // t comes first
	t.Helper()
	response, err := c.Call(ctx, r)
	if err == nil {
		return response, nil
	}
	f, ok := errors.AsType[*step.Error](err)
	if !ok {
		t.Fatalf("%v is no failure", err)
	}
	return nil, f
}

// TestDeliveredOnce: what net/http would send again by itself, since it has an
// Idempotency-Key, is sent once.
func TestDeliveredOnce(t *testing.T) {
	t.Parallel()
	for _, r := range []step.Request{
		{Method: "POST", Body: []byte(`{"a": 1}`)}, {Method: "POST"}, {Method: "GET"}, {Method: "PUT", Body: []byte("x")},
	} {
		url, count := closing(t)
		r.URL, r.Headers = url, map[string]string{"Idempotency-Key": "the-key-of-it"}
		c := client()
		if response, f := call(t, t.Context(), c, &r); f != nil || string(response.Body) != "ok" {
			t.Fatalf("%s: %v", r.Method, f)
		}
		_, f := call(t, t.Context(), c, &r)
		if f == nil || !f.Sent || f.Message != "the connection ended without a whole answer" {
			t.Errorf("%s: %+v", r.Method, f)
		}
		if n := count.Load(); n != 2 {
			t.Errorf("%s: the second call was delivered %d times", r.Method, n-1)
		}
	}
}

// TestThePlainClientDeliversTwice: the danger is real, and the server above
// shows it.
func TestThePlainClientDeliversTwice(t *testing.T) {
	t.Parallel()
	url, count := closing(t)
	plain := &http.Client{Transport: &http.Transport{}}
	for range 2 {
		request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", "the-key-of-it")
		if response, err := plain.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
	if n := count.Load(); n != 3 {
		t.Errorf("%d deliveries of 2 requests", n)
	}
}

// TestNotSent: nobody has heard of it, and that is said.
func TestNotSent(t *testing.T) {
	t.Parallel()
	inside, count := serve(t, func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now())
	defer cancelLate()
	guarded := callhttp.New(callhttp.Params{})
	for _, c := range []struct {
		name      string
		client    *callhttp.Client
		ctx       context.Context //nolint:containedctx // a case's
		r         step.Request
		retryable bool
		message   string
	}{
		{"nobody listens", client(), t.Context(), step.Request{URL: "http://" + listener.Addr().String()}, true, "the connection failed: connection refused"},
		{"no such name", client(), t.Context(), step.Request{URL: "http://nowhere.invalid/"}, true, "the name of the host was not found"},
		{"not trusted", client(), t.Context(), step.Request{URL: secure.URL}, false, "the server's certificate is not trusted"},
		{"private", guarded, t.Context(), step.Request{URL: inside}, false, "the address is not one of the internet; the setting flows.allow_private lifts this"},
		{"private by name", guarded, t.Context(), step.Request{URL: strings.Replace(inside, "127.0.0.1", "localhost", 1)}, false, "the address is not one of the internet; the setting flows.allow_private lifts this"},
		{"metadata", guarded, t.Context(), step.Request{URL: "http://169.254.169.254/"}, false, "the address is not one of the internet; the setting flows.allow_private lifts this"},
		{"cancelled before", client(), ended, step.Request{URL: inside}, true, "the call was cancelled"},
		{"late before", client(), late, step.Request{URL: inside}, true, "there was no answer in time"},
		{"a header with a line end", client(), t.Context(), step.Request{URL: inside, Headers: map[string]string{"X-A": "a\r\nX-B: b"}}, false, "the request cannot be sent: a header or the URL is not valid"},
		{"no URL", client(), t.Context(), step.Request{URL: "http://a\x7f/secret"}, false, "the URL or the method cannot be used"},
	} {
		c.r.Method = "POST"
		_, f := call(t, c.ctx, c.client, &c.r)
		if f == nil || f.Sent || f.Retryable != c.retryable || f.Message != c.message {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	if n := count.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// TestSent: once there was a connection, it may have been heard.
func TestSent(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent, count := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, f := call(t, ctx, client(), &step.Request{Method: "POST", URL: silent, Body: []byte("x")})
	if f == nil || !f.Sent || f.Message != "there was no answer in time" {
		t.Errorf("silence: %+v", f)
	}
	if n := count.Load(); n != 1 {
		t.Errorf("%d requests arrived", n)
	}
	hangsUp, _ := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, f := call(t, t.Context(), client(), &step.Request{Method: "POST", URL: hangsUp}); f == nil || !f.Sent {
		t.Errorf("hung up: %+v", f)
	}
}

// TestRedirectsAreNotFollowed: a header goes where it was sent and no further.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	target, count := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, status := range []int{301, 302, 303, 307, 308} {
		url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, status) })
		response, f := call(t, t.Context(), client(), &step.Request{Method: "POST", URL: url, Headers: map[string]string{"Authorization": "Bearer x"}})
		if f != nil || response.Status != status || response.Headers["location"] != target {
			t.Errorf("%d: %+v, %+v", status, response, f)
		}
	}
	if n := count.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Many", "one")
		w.Header().Add("X-Many", "two")
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(make([]byte, callhttp.MaxBody+1))
		case "/full":
			_, _ = w.Write(make([]byte, callhttp.MaxBody))
		case "/cut":
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("four"))
		default:
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write(append(body, r.UserAgent()+r.Header.Get("Accept-Encoding")...))
		}
	})
	get := func(path string) *step.Response {
		response, f := call(t, t.Context(), client(), &step.Request{Method: "POST", URL: url + path, Body: []byte("body ")})
		if f != nil {
			t.Fatalf("%s: %+v", path, f)
		}
		return response
	}
	if r := get("/"); r.Status != 418 || string(r.Body) != "body test" || r.Headers["x-many"] != "one" || r.Cut != "" {
		t.Errorf("%+v", r)
	}
	if r := get("/full"); len(r.Body) != callhttp.MaxBody || r.Cut != "" || r.TooLarge {
		t.Errorf("%d bytes, %q", len(r.Body), r.Cut)
	}
	if r := get("/large"); len(r.Body) != callhttp.MaxBody || r.Cut != "the answer is larger than 1 MiB" || !r.TooLarge {
		t.Errorf("%d bytes, %q", len(r.Body), r.Cut)
	}
	if r := get("/cut"); r.Status != 200 || string(r.Body) != "four" || r.Cut != "the connection ended without a whole answer" || r.TooLarge {
		t.Errorf("%+v", r)
	}
}
