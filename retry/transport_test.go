package retry_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/retry"
)

// reply is one scripted answer; err stands for none.
type reply struct {
	status int
	code   string
	// details is JSON, without the braces.
	details string
	header  map[string]string
	err     error
	// body wins over code.
	body io.ReadCloser
}

func (r reply) response(request *http.Request) *http.Response {
	h := http.Header{}
	for name, value := range r.header {
		h.Set(name, value)
	}
	body := r.body
	if body == nil {
		body = io.NopCloser(strings.NewReader(r.text()))
	}
	return &http.Response{StatusCode: r.status, Header: h, Body: body, Request: request}
}

func (r reply) text() string {
	if r.code == "" {
		return "plain"
	}
	return fmt.Sprintf(`{"error":{"code":%q,"message":"m","details":{%s}}}`, r.code, r.details)
}

// sent is what a request looked like, and when it came.
type sent struct {
	At     time.Duration
	Method string
	Header http.Header
	Length int64
	Body   string
}

// base is a RoundTripper that plays replies one after another, the last one for
// ever.
type base struct {
	replies []reply
	start   time.Time
	mu      sync.Mutex
	sent    []sent
}

func play(replies ...reply) *base { return &base{replies: replies, start: time.Now()} }

func (b *base) RoundTrip(request *http.Request) (*http.Response, error) {
	var content []byte
	if request.Body != nil {
		var err error
		if content, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		request.Body.Close() //nolint:errcheck // it is in memory
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, sent{time.Since(b.start), request.Method, request.Header.Clone(), request.ContentLength, string(content)})
	r := b.replies[min(len(b.sent), len(b.replies))-1]
	if r.err != nil {
		return nil, r.err
	}
	return r.response(request), nil
}

func (b *base) at() (times []time.Duration) {
	for _, s := range b.sent {
		times = append(times, s.At)
	}
	return times
}

// steady is a policy whose delays have no jitter.
var steady = retry.Policy{Delays: retry.Delays{Rand: middle}}

func newRequest(t *testing.T, kind retry.Kind, body io.Reader) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(retry.WithKind(t.Context(), kind), "POST", "http://example.test/v1/x", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer aps_1")
	request.Header.Set("Idempotency-Key", "order-42:email")
	return request
}

// got is what a round trip brought: an answer, read to its end, or an error.
type got struct {
	status, attempts int
	text             string
	err              error
	request          *http.Request
}

func do(transport http.RoundTripper, request *http.Request) got {
	return finish(transport.RoundTrip(request))
}

func finish(response *http.Response, err error) got {
	if err != nil {
		return got{err: err}
	}
	content, err := io.ReadAll(response.Body)
	return got{response.StatusCode, retry.Attempts(response), string(content), errors.Join(err, response.Body.Close()), response.Request}
}

// TestTransportRepeats: the same request again, at the right times, until it
// succeeds; the caller's request is left as it was.
func TestTransportRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := play(
			reply{status: 500, code: "internal"}, reply{err: io.ErrUnexpectedEOF},
			reply{status: 429, code: "rate_limited", header: map[string]string{"Retry-After": "7"}},
			reply{status: 503, body: io.NopCloser(strings.NewReader("<html>"))}, reply{status: 200, body: io.NopCloser(strings.NewReader("done"))})
		var told []retry.Retry
		policy := steady
		policy.OnRetry = func(r retry.Retry) { told = append(told, r) }
		request := newRequest(t, retry.Keyed, strings.NewReader(`{"amount": 1}`))
		before := request.Clone(request.Context())
		g := do(&retry.Transport{Base: b, Policy: policy}, request)
		if g.err != nil || g.text != "done" || g.attempts != 5 {
			t.Fatalf("got %+v", g)
		}
		if want := []time.Duration{0, 1e9, 3e9, 10e9, 18e9}; !slices.Equal(b.at(), want) {
			t.Errorf("attempts at %v, want %v", b.at(), want)
		}
		for _, s := range b.sent {
			s.At = 0
			want := sent{Method: "POST", Header: before.Header, Length: 13, Body: `{"amount": 1}`}
			if diff := gocmp.Diff(want, s); diff != "" {
				t.Errorf("an attempt differs:\n%s", diff)
			}
		}
		if len(told) != 4 || told[2].Wait != 7*time.Second || told[2].Outcome.Code != "rate_limited" || told[1].Outcome.Err == nil {
			t.Errorf("told of %+v", told)
		}
		if diff := gocmp.Diff(before.Header, request.Header); diff != "" || g.request.URL != request.URL {
			t.Errorf("the request was changed: %s", diff)
		}
	})
}

// TestTransportEnds: when attempts or time end, the last answer is returned, at
// once and whole.
func TestTransportEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		policy   retry.Policy
		timeout  time.Duration
		reply    reply
		attempts int
		took     time.Duration
	}{
		{"attempts", retry.Policy{MaxAttempts: 3}, 0, reply{status: 500, code: "internal"}, 3, 3 * time.Second},
		{"one attempt", retry.Policy{MaxAttempts: 1}, 0, reply{status: 500, code: "internal"}, 1, 0},
		{"budget", retry.Policy{Budget: 8 * time.Second}, 0, reply{status: 500, code: "internal"}, 4, 7 * time.Second},
		{"deadline", retry.Policy{}, 2 * time.Second, reply{status: 500, code: "internal"}, 2, time.Second},
		{"deadline, Retry-After", retry.Policy{}, 9 * time.Second, reply{status: 429, header: map[string]string{"Retry-After": "9"}}, 1, 0},
		{"no answer", retry.Policy{MaxAttempts: 2}, 0, reply{err: io.EOF}, 2, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.policy.Delays = steady.Delays
				b := play(c.reply)
				// The Timeout of a client is a deadline for all attempts.
				client := &http.Client{Transport: &retry.Transport{Base: b, Policy: c.policy}, Timeout: c.timeout}
				g := finish(client.Do(newRequest(t, retry.Event, strings.NewReader("{}"))))
				if took := time.Since(b.start); took != c.took || len(b.sent) != c.attempts {
					t.Errorf("%d attempts in %v", len(b.sent), took)
				}
				if c.reply.err != nil {
					e, ok := errors.AsType[*retry.Error](g.err)
					if !ok || e.Attempts != c.attempts || !e.Verdict.Retry || !errors.Is(g.err, c.reply.err) {
						t.Errorf("got %v", g.err)
					}
				} else if g.err != nil || g.text != c.reply.text() || g.attempts != c.attempts {
					t.Errorf("got %+v", g)
				}
			})
		})
	}
}

// TestTransportStops: a caller who leaves is heard at once, and nothing is sent
// after that.
func TestTransportStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2500*time.Millisecond, func() { cancel(left) })
		body := &closing{Reader: strings.NewReader("refused")}
		b := play(reply{status: 500}, reply{status: 500, body: body})
		g := do(&retry.Transport{Base: b, Policy: steady}, newRequest(t, retry.Event, nil).WithContext(retry.WithKind(ctx, retry.Event)))
		if took := time.Since(b.start); !errors.Is(g.err, left) || len(b.sent) != 2 || took != 2500*time.Millisecond {
			t.Errorf("%d attempts in %v: %v", len(b.sent), took, g.err)
		}
		if body.closed != 1 {
			t.Errorf("the last answer was closed %d times", body.closed)
		}
	})
}

// closing counts how often it is closed, and what has been read of it.
type closing struct {
	io.Reader

	closed, read int
	err          error
}

func (c *closing) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	if errors.Is(err, io.EOF) {
		err = cmp.Or(c.err, err)
	}
	return n, err
}

func (c *closing) Close() error {
	c.closed++
	return nil
}

// TestTransportHandsOn: a success, a redirect and a change of protocol are
// handed on unread, as they are.
func TestTransportHandsOn(t *testing.T) {
	t.Parallel()
	for _, status := range []int{101, 200, 204, 302, 304} {
		body := &closing{Reader: strings.NewReader("content"), err: io.ErrUnexpectedEOF}
		b := play(reply{status: status, body: body})
		response, err := (&retry.Transport{Base: b}).RoundTrip(newRequest(t, retry.Event, nil)) //nolint:bodyclose // that nobody has is what is tried
		if err != nil || response.Body != io.ReadCloser(body) || body.read != 0 || body.closed != 0 {
			t.Fatalf("%d: got %v, %v; %d bytes were read", status, response, err, body.read)
		}
		if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) || len(b.sent) != 1 {
			t.Errorf("%d: a body cut short is read as %v, after %d attempts", status, err, len(b.sent))
		}
	}
}

// TestTransportRefusals: a refusal comes whole, however large; one that is cut
// short is no answer; one that is followed by a repeat is closed.
func TestTransportRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("<p>", 1<<20)
		body := &closing{Reader: strings.NewReader(large)}
		b := play(reply{status: 422, body: body})
		g := do(&retry.Transport{Base: b}, newRequest(t, retry.Event, nil))
		if g.err != nil || g.text != large || body.closed != 1 {
			t.Errorf("a large refusal: %v; closed %d times", g.err, body.closed)
		}
		short := &closing{Reader: strings.NewReader(`{"error":{"code":"validation_failed"`), err: io.ErrUnexpectedEOF}
		body = &closing{Reader: strings.NewReader(large)}
		b = play(reply{status: 422, body: short}, reply{status: 500, body: body}, reply{status: 202})
		g = do(&retry.Transport{Base: b, Policy: steady}, newRequest(t, retry.Event, nil))
		if g.err != nil || g.status != http.StatusAccepted || len(b.sent) != 3 || short.closed != 1 || body.closed != 1 {
			t.Errorf("got %+v after %d attempts; closed %d and %d times", g, len(b.sent), short.closed, body.closed)
		}
	})
}

// TestTransportDate: a Retry-After that is a date is read by the clock of the
// policy.
func TestTransportDate(t *testing.T) {
	t.Parallel()
	var slept []time.Duration
	policy := retry.Policy{Now: func() time.Time { return noon }, Sleep: func(_ context.Context, d time.Duration) error {
		slept = append(slept, d)
		return nil
	}}
	b := play(reply{status: 503, header: map[string]string{"Retry-After": "Fri, 01 May 2026 12:00:09 GMT"}}, reply{status: 200})
	if g := do(&retry.Transport{Base: b, Policy: policy}, newRequest(t, retry.Event, nil)); g.err != nil {
		t.Fatal(g.err)
	}
	// Once: the rest of the lane is the same wait.
	if !slices.Equal(slept, []time.Duration{9 * time.Second}) {
		t.Errorf("waited %v", slept)
	}
}
