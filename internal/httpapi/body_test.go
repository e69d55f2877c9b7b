package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/actionpulse/actionpulse/api"
)

func gzipOf(t testing.TB, text []byte) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// zstdOf streams, so that the frame does not say how long it is.
func zstdOf(t testing.TB, text []byte, options ...zstd.EOption) string {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		t.Fatal(err)
	}
	for rest := text; len(rest) > 0; rest = rest[min(1000, len(rest)):] {
		if _, err := w.Write(rest[:min(1000, len(rest))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// zstdAll says in its frame how long it is.
func zstdAll(t testing.TB, text []byte) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return string(w.EncodeAll(text, nil))
}

// padded is a JSON object of n bytes.
func padded(n int) []byte {
	return []byte(`{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}`)
}

func TestCodedBodies(t *testing.T) {
	fits, over := padded(trackLimit), padded(trackLimit+1)
	noise := make([]byte, trackLimit-2)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	for i := range noise {
		noise[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[noise[i]&63]
	}
	noise = append(append([]byte{'"'}, noise...), '"')
	two := gzipOf(t, fits[:1000]) + gzipOf(t, fits[1000:])
	for _, c := range []struct {
		name, coding, body string
		code               api.Code
		want               []byte
	}{
		{"gzip", "gzip", gzipOf(t, fits), "", fits},
		{"x-gzip, upper case", "X-GZIP", gzipOf(t, fits), "", fits},
		{"gzip in two members", "gzip", two, "", fits},
		{"gzip of noise", "gzip", gzipOf(t, noise), "", noise},
		{"gzip over the limit", "gzip", gzipOf(t, over), api.CodePayloadTooLarge, nil},
		{"gzip cut short", "gzip", gzipOf(t, fits)[:500], api.CodeInvalidJSON, nil},
		{"gzip with something after it", "gzip", gzipOf(t, fits) + "x", api.CodeInvalidJSON, nil},
		{"gzip with a wrong checksum", "gzip", strings.Replace(gzipOf(t, []byte(`{"a":1}`)), "\x07\x00\x00\x00", "\x08\x00\x00\x00", 1), api.CodeInvalidJSON, nil},
		{"nothing as gzip", "gzip", "", api.CodeInvalidJSON, nil},
		{"zstd", "zstd", zstdOf(t, fits), "", fits},
		{"zstd that says its length", "zstd", zstdAll(t, fits), "", fits},
		{"zstd in two frames", "zstd", zstdAll(t, fits[:700000]) + zstdOf(t, fits[700000:]), "", fits},
		{"zstd of noise", "zstd", zstdAll(t, noise), "", noise},
		{"zstd with the largest window", "zstd", zstdOf(t, fits, zstd.WithWindowSize(8<<20)), "", fits},
		{"zstd with a larger window", "zstd", zstdOf(t, fits, zstd.WithWindowSize(16<<20)), api.CodeUnsupportedMediaType, nil},
		{"zstd over the limit", "zstd", zstdOf(t, over), api.CodePayloadTooLarge, nil},
		{"zstd over the limit that says so", "zstd", zstdAll(t, over), api.CodePayloadTooLarge, nil},
		{"zstd far over the limit that says so", "zstd", zstdAll(t, padded(32<<20)), api.CodePayloadTooLarge, nil},
		{"zstd cut short", "zstd", zstdOf(t, fits)[:30], api.CodeInvalidJSON, nil},
		{"zstd with something after it", "zstd", zstdOf(t, fits) + "garbage", api.CodeInvalidJSON, nil},
		{"gzip as zstd", "zstd", gzipOf(t, fits), api.CodeInvalidJSON, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			r := b.do(t, request{path: "/v1/track", secret: "server", body: c.body, headers: map[string]string{"Content-Encoding": c.coding}})
			taken := b.intake.taken()
			if c.code != "" {
				wantRefusal(t, r, c.code)
				if len(taken) != 0 {
					t.Error("a refused body reached intake")
				}
			} else if r.status != 202 || len(taken) != 1 || taken[0].body != string(c.want) {
				t.Errorf("%d %s; %d requests reached intake", r.status, r.body, len(taken))
			}
			if held := b.service.bodies.held.Load(); held != 0 {
				t.Errorf("%d bytes are still held", held)
			}
		})
	}
}

// TestBombs sends bodies that grow a thousandfold and more, and checks that
// only the limit is ever held.
func TestBombs(t *testing.T) {
	b := setup(t)
	zeros := make([]byte, 64<<20)
	empty := strings.Repeat(gzipOf(t, nil), 60_000)
	for name, q := range map[string]request{
		"gzip":         {body: gzipOf(t, zeros), headers: map[string]string{"Content-Encoding": "gzip"}},
		"zstd":         {body: zstdOf(t, zeros), headers: map[string]string{"Content-Encoding": "zstd"}},
		"empty blocks": {body: empty, headers: map[string]string{"Content-Encoding": "gzip"}},
	} {
		q.path, q.secret = "/v1/track", "server"
		e := wantRefusal(t, b.do(t, q), api.CodePayloadTooLarge)
		if e.Details["limit_bytes"] != float64(trackLimit) {
			t.Errorf("%s: limit_bytes is %v", name, e.Details["limit_bytes"])
		}
	}
	buf := b.service.bodies.get()
	if err := b.service.inflaters.inflate(buf, gzipped, []byte(gzipOf(t, zeros)), trackLimit); !errors.Is(err, errTooLarge) {
		t.Errorf("inflate: %v", err)
	}
	if cap(buf.data) > trackLimit+1 || buf.held > trackLimit+1 {
		t.Errorf("%d bytes in memory, %d held", cap(buf.data), buf.held)
	}
	b.service.bodies.put(buf)
}

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
			b := setup(t)
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
	b := setup(t)
	b.intake.track = func(ctx context.Context, _ []byte) (api.TrackResponse, error) {
		select {
		case <-time.After(2 * testBodyTimeout):
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
	if took := time.Since(began); took > testBodyTimeout {
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

func FuzzInflate(f *testing.F) {
	f.Add(true, []byte(gzipOf(f, []byte(`{"a":1}`))), 100)
	f.Add(false, []byte(zstdOf(f, []byte(`{"a":1}`))), 100)
	f.Add(false, []byte(zstdAll(f, padded(5000))), 100)
	all, err := newInflaters()
	if err != nil {
		f.Fatal(err)
	}
	bodies := newBodies(1 << 30)
	f.Fuzz(func(t *testing.T, isGzip bool, coded []byte, limit int) {
		if limit < 1 || limit > 1<<20 {
			return
		}
		coding := zstandard
		if isGzip {
			coding = gzipped
		}
		buf := bodies.get()
		defer bodies.put(buf)
		if err := all.inflate(buf, coding, coded, limit); err == nil && len(buf.data) > limit {
			t.Errorf("%d bytes came of it, limit %d", len(buf.data), limit)
		}
	})
}

func FuzzFill(f *testing.F) {
	f.Add([]byte("abc"), 3, int64(3))
	f.Add([]byte("abcd"), 3, int64(-1))
	bodies := newBodies(1 << 30)
	f.Fuzz(func(t *testing.T, text []byte, limit int, hint int64) {
		if limit < 1 || limit > 1<<20 {
			return
		}
		buf := bodies.get()
		defer bodies.put(buf)
		err := buf.fill(bytes.NewReader(text), limit, hint)
		if (err == nil) != (len(text) <= limit) || (err == nil && !bytes.Equal(buf.data, text)) {
			t.Errorf("%d bytes, limit %d: %v", len(text), limit, err)
		}
	})
}
