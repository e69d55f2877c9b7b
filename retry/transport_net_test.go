package retry_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// quick is a policy that hardly waits.
var quick = retry.Policy{Delays: retry.Delays{First: time.Millisecond}}

// TestTransportReset: a connection that is reset after the work was done is no
// answer. Keyed work is repeated and gets its answer, an unkeyed mutation is
// not sent a second time.
func TestTransportReset(t *testing.T) {
	t.Parallel()
	var done atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil || string(content) != "content" || r.ContentLength != 7 {
			t.Errorf("read %q of %d, %v", content, r.ContentLength, err)
		}
		if done.Add(1) == 1 {
			panic(http.ErrAbortHandler) // ends the connection without an answer
		}
		io.WriteString(w, "replayed") //nolint:errcheck // the client sees it
	}))
	defer server.Close()
	for kind, want := range map[retry.Kind]int64{retry.Keyed: 2, retry.Mutation: 1} {
		done.Store(0)
		client := &http.Client{Transport: &retry.Transport{Base: server.Client().Transport, Policy: quick}}
		request := newRequest(t, kind, strings.NewReader("content"))
		request.URL.Host, request.Host = server.Listener.Addr().String(), ""
		g := finish(client.Do(request))
		if done.Load() != want {
			t.Errorf("kind %d: delivered %d times, want %d", kind, done.Load(), want)
		}
		if kind == retry.Mutation {
			if e, ok := errors.AsType[*retry.Error](g.err); !ok || e.Verdict.Action != retry.ReadFirst || e.Attempts != 1 {
				t.Errorf("got %v", g.err)
			}
		} else if g.err != nil || g.text != "replayed" || g.attempts != 2 {
			t.Errorf("got %+v", g)
		}
	}
}

// TestTransportReusedConnection: a connection that ends without an answer when
// it is used again does not make net/http deliver a request with a key twice;
// each delivery is an attempt.
func TestTransportReusedConnection(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"content", ""} {
		address, delivered := ending(t)
		transport := &retry.Transport{Base: &http.Transport{}, Policy: retry.Policy{MaxAttempts: 1}}
		send := func() error {
			request, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address, strings.NewReader(body))
			if err != nil {
				return err
			}
			request.Header.Set("Idempotency-Key", "order-42")
			return do(transport, request).err
		}
		if err := send(); err != nil {
			t.Fatal(err)
		}
		e, ok := errors.AsType[*retry.Error](send())
		if !ok || e.Attempts != 1 || !e.Verdict.Retry || delivered.Load() != 2 {
			t.Errorf("body %q: delivered %d times, %v", body, delivered.Load(), e)
		}
	}
}

// ending starts a server that answers the first request of each connection, and
// ends the connection after it has read the second.
func ending(t *testing.T) (address string, delivered *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() }) //nolint:errcheck // the test is over
	delivered = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerOnce(conn, delivered)
		}
	}()
	return listener.Addr().String(), delivered
}

func answerOnce(conn net.Conn, delivered *atomic.Int64) {
	defer conn.Close() //nolint:errcheck // that is what the client is to see
	reader := bufio.NewReader(conn)
	for n := range 2 {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		io.Copy(io.Discard, request.Body) //nolint:errcheck // the client notices
		if request.Header.Get("Idempotency-Key") != "order-42" {
			return
		}
		delivered.Add(1)
		if n == 0 {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") //nolint:errcheck // as above
		}
	}
}

// TestTransportConnections: the connection of an answer that is repeated is used
// again.
func TestTransportConnections(t *testing.T) {
	t.Parallel()
	var opened, n atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) < 4 {
			w.WriteHeader(http.StatusBadGateway)
		}
		io.WriteString(w, strings.Repeat("x", 4<<10)) //nolint:errcheck // the client sees it
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := &http.Client{Transport: &retry.Transport{Base: &http.Transport{}, Policy: quick}}
	request, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	g := finish(client.Do(request))
	if g.err != nil || len(g.text) != 4<<10 || g.attempts != 4 || opened.Load() != 1 {
		t.Errorf("got %d after %d attempts, %v on %d connections", g.status, g.attempts, g.err, opened.Load())
	}
	client.CloseIdleConnections()
}

// TestTransportUnfit: what can never be sent is not tried again; a server that
// is not there is.
func TestTransportUnfit(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]int{"htp://" + nobody: 1, "http:///x": 1, "http://" + nobody: 3} {
		policy := quick
		policy.MaxAttempts = 3
		request, err := http.NewRequestWithContext(t.Context(), "GET", url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		err = do(&retry.Transport{Base: &http.Transport{}, Policy: policy}, request).err
		if e, ok := errors.AsType[*retry.Error](err); !ok || e.Attempts != want || e.Verdict.Retry != (want > 1) {
			t.Errorf("%s: got %v", url, err)
		}
	}
	g := do(&retry.Transport{Base: &http.Transport{}, Policy: quick}, new(http.Request))
	if e, ok := errors.AsType[*retry.Error](g.err); !ok || e.Attempts != 1 || e.Verdict.Retry {
		t.Errorf("no URL: got %v", g.err)
	}
}

// TestTransportTimeout: a client's own limit is told from other ends.
func TestTransportTimeout(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts nothing
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	base := &http.Transport{ResponseHeaderTimeout: time.Millisecond}
	client := &http.Client{Transport: &retry.Transport{Base: base, Policy: retry.Policy{MaxAttempts: 2, Delays: quick.Delays}}}
	request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+listener.Addr().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	err = finish(client.Do(request)).err
	e, ok := errors.AsType[*retry.Error](err)
	if !ok || e.Attempts != 2 || !e.Timeout() {
		t.Errorf("got %v", err)
	}
	if slow, ok := errors.AsType[net.Error](err); !ok || !slow.Timeout() {
		t.Errorf("%v is no timeout", err)
	}
}
