package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

func TestLimitsOfEachRoute(t *testing.T) {
	b := setup(t)
	for path, limit := range map[string]int{"/v1/track": trackLimit, "/v1/identify": itemLimit, "/v1/alias": itemLimit} {
		if r := b.do(t, request{path: path, secret: "server", body: string(padded(limit))}); r.status != 202 {
			t.Errorf("%s at its limit: %d", path, r.status)
		}
		e := wantRefusal(t, b.do(t, request{path: path, secret: "server", body: string(padded(limit + 1))}), api.CodePayloadTooLarge)
		if e.Details["limit_bytes"] != float64(limit) {
			t.Errorf("%s: limit_bytes is %v, want %d", path, e.Details["limit_bytes"], limit)
		}
	}
}

// head is the start of a track request whose body is sent by hand.
func head(more string) string {
	return "POST /v1/track HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer server\r\n" + more + "\r\n"
}

func TestSlowBody(t *testing.T) {
	for name, start := range map[string]string{
		"none of it":   head("Content-Length: 10\r\n"),
		"some of it":   head("Content-Length: 10\r\n") + "{",
		"some chunks":  head("Transfer-Encoding: chunked\r\n") + "1\r\n{\r\n",
		"half a chunk": head("Transfer-Encoding: chunked\r\n") + "5\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			b := setupWithin(t, impatience)
			c := b.dial(t)
			send(t, c, start)
			r := receive(t, c, "POST")
			wantRefusal(t, r, api.CodeRequestTimeout)
			if !r.closing {
				t.Error("the answer does not say that the connection is closed")
			}
			if n, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("the connection goes on: %d, %v", n, err)
			}
			if len(b.intake.taken()) != 0 {
				t.Error("a body that never came reached intake")
			}
		})
	}
}

// TestTimeToAnswerIsNotTimeToSend has intake take longer than a body may.
func TestTimeToAnswerIsNotTimeToSend(t *testing.T) {
	b := setupWithin(t, impatience)
	b.intake.track = func(ctx context.Context, _ []byte) (api.TrackResponse, error) {
		select {
		case <-time.After(2 * impatience):
			return api.TrackResponse{Accepted: 1}, nil
		case <-ctx.Done():
			return api.TrackResponse{}, ctx.Err()
		}
	}
	c := b.dial(t)
	for range 2 {
		send(t, c, head("Content-Length: 2\r\n")+"{}")
		if r := receive(t, c, "POST"); r.status != 202 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
}

func TestRefusalBeforeTheBodyComes(t *testing.T) {
	b := setup(t)
	c := b.dial(t)
	began := time.Now()
	send(t, c, strings.Replace(head("Content-Length: 5\r\n"), "server", "nobody", 1))
	wantRefusal(t, receive(t, c, "POST"), api.CodeUnauthenticated)
	if took := time.Since(began); took >= patience {
		t.Errorf("the refusal waited %v for the body", took)
	}
	send(t, c, "12345"+head("Content-Length: 2\r\n")+"{}")
	if r := receive(t, c, "POST"); r.status != 202 {
		t.Errorf("the connection cannot be used again: %d %s", r.status, r.body)
	}
}

// TestRefusalReachesASenderOfMuch sends far more than is read before it looks
// at the answer, as many clients do.
func TestRefusalReachesASenderOfMuch(t *testing.T) {
	for name, start := range map[string]string{
		"of known length":   head(fmt.Sprintf("Content-Length: %d\r\n", 6<<20)),
		"of unknown length": head("Transfer-Encoding: chunked\r\n") + fmt.Sprintf("%x\r\n", 6<<20),
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			c := b.dial(t)
			send(t, c, start)
			send(t, c, strings.Repeat("x", 6<<20))
			if strings.Contains(start, "chunked") {
				send(t, c, "\r\n0\r\n\r\n")
			}
			wantRefusal(t, receive(t, c, "POST"), api.CodePayloadTooLarge)
		})
	}
}

func TestExpectContinue(t *testing.T) {
	b := setup(t)
	c := b.dial(t)
	send(t, c, head("Content-Length: 2000000\r\nExpect: 100-continue\r\n"))
	wantRefusal(t, receive(t, c, "POST"), api.CodePayloadTooLarge)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a body that was not asked for is waited for: %v", err)
	}
}

func TestMalformedChunks(t *testing.T) {
	b := setup(t)
	c := b.dial(t)
	send(t, c, head("Transfer-Encoding: chunked\r\n")+"zz\r\n{}\r\n")
	wantRefusal(t, receive(t, c, "POST"), api.CodeInvalidJSON)
}

// TestClientLeaves cuts connections in the middle of a body and of an answer.
func TestClientLeaves(t *testing.T) {
	b := setup(t)
	c := b.dial(t)
	send(t, c, head("Content-Length: 10\r\n")+"{")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c); err != nil || len(rest) != 0 {
		t.Errorf("answered %q, %v", rest, err)
	}
	c = b.dial(t)
	send(t, c, strings.NewReplacer("/v1/track", queryPath, "server", "member").Replace(head("Content-Length: 15\r\n"))+`{"type":"wait"}`)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b.await(t, "/v1/track", "client_gone", "499")
	b.await(t, "/api/v1/projects/{id}/query", "client_gone", "499")
	if len(b.intake.taken()) != 0 || b.log.String() != "" {
		t.Errorf("%d requests reached intake; log: %s", len(b.intake.taken()), b.log)
	}
}

// await waits until a request has been counted.
func (b *bundle) await(t *testing.T, route, code, status string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for b.counted(t, route, code, status) == 0 {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("no request to %s was counted as %s %s", route, code, status)
		}
	}
}

func TestWorkGoesOnWhenTheClientLeaves(t *testing.T) {
	b := setup(t)
	entered, left, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	b.intake.track = func(ctx context.Context, _ []byte) (api.TrackResponse, error) {
		close(entered)
		<-left
		result <- ctx.Err()
		return api.TrackResponse{}, nil
	}
	c := b.dial(t)
	send(t, c, head("Content-Length: 2\r\n")+"{}")
	<-entered
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	close(left)
	if err := <-result; err != nil {
		t.Errorf("the work was cancelled: %v", err)
	}
}

func TestMemoryForBodies(t *testing.T) {
	b := setup(t)
	b.service.bodies.limit = 256 << 10
	e := wantRefusal(t, b.do(t, request{path: "/v1/track", secret: "server", body: string(padded(500 << 10))}), api.CodeUnavailable)
	if e.Details["applied"] != false {
		t.Errorf("applied is %v", e.Details["applied"])
	}
	if r := b.do(t, request{path: "/v1/track", secret: "server", body: string(padded(100 << 10))}); r.status != 202 {
		t.Errorf("a small body is refused: %s", r.body)
	}
	if held := b.service.bodies.held.Load(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}

// TestNoBodyIsEverAnothers has many clients send bodies of their own, some of
// whom leave, and intake look at each body again before it returns.
func TestNoBodyIsEverAnothers(t *testing.T) {
	b := setup(t)
	b.intake.track = func(_ context.Context, body []byte) (api.TrackResponse, error) {
		before := string(body)
		for range 3 {
			runtime.Gosched()
		}
		if string(body) != before || strings.Trim(before, before[:1]) != "" {
			t.Errorf("a body changed or is a mixture: %.40s…", body)
		}
		return api.TrackResponse{}, nil
	}
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			for n := range 30 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+n%20)*time.Millisecond)
				text := strings.Repeat(string(rune('a'+i)), 1+(n*7919)%100_000)
				var body io.Reader = strings.NewReader(text)
				r, err := http.NewRequestWithContext(ctx, "POST", b.url+"/v1/track", body)
				if err != nil {
					t.Error(err)
				}
				r.Header.Set("Authorization", "Bearer server")
				if n%3 == 0 {
					r.Header.Set("Content-Encoding", "gzip")
					coded := gzipOf(t, []byte(text))
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(coded)), int64(len(coded))
				}
				if answer, err := http.DefaultClient.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
				cancel()
			}
		})
	}
	clients.Wait()
}
