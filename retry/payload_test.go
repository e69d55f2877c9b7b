package retry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/actionpulse/actionpulse/retry"
)

// TestTransportBodies: whatever the body is, it is sent whole each time or only
// once, and closed once.
func TestTransportBodies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		content  string
		declared int64
		max      int64
		// attempts is how many there are of two, and length the Content-Length of
		// each.
		attempts int
		length   int64
	}{
		{"of known length", "content", 7, 0, 2, 7},
		{"of unknown length", "content", -1, 0, 2, 7},
		{"without a length", "content", 0, 0, 2, 7},
		{"as large as may be", "content", -1, 7, 2, 7},
		{"too large", "content", 7, 6, 1, 7},
		{"too large, of unknown length", "content", -1, 6, 1, -1},
		{"empty after all", "", -1, 0, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body := &closing{Reader: strings.NewReader(c.content)}
				request := newRequest(t, retry.Event, nil)
				request.Body, request.ContentLength = body, c.declared
				b := play(reply{status: 500, code: "internal"}, reply{status: 202})
				g := do(&retry.Transport{Base: b, Policy: steady, MaxBody: c.max}, request)
				if g.err != nil || g.attempts != c.attempts || len(b.sent) != c.attempts || body.closed != 1 {
					t.Fatalf("%d attempts, closed %d times: %+v", len(b.sent), body.closed, g)
				}
				if c.attempts == 1 && (g.status != http.StatusInternalServerError || g.text != b.replies[0].text()) {
					t.Errorf("the answer is not the first: %+v", g)
				}
				for _, s := range b.sent {
					if s.Body != c.content || s.Length != c.length {
						t.Errorf("sent %q of length %d", s.Body, s.Length)
					}
				}
			})
		})
	}
}

// TestTransportTooLarge: where there is no answer, the error says why there was
// no repeat.
func TestTransportTooLarge(t *testing.T) {
	t.Parallel()
	request := newRequest(t, retry.Keyed, nil)
	request.Body = &closing{Reader: strings.NewReader("content")}
	b := play(reply{err: io.EOF})
	err := do(&retry.Transport{Base: b, MaxBody: 3}, request).err
	e, ok := errors.AsType[*retry.Error](err)
	if !ok || e.Verdict.Retry || e.Attempts != 1 || len(b.sent) != 1 || !strings.Contains(err.Error(), "too large to be kept") || !errors.Is(err, io.EOF) {
		t.Errorf("got %v after %d attempts", err, len(b.sent))
	}
}

// TestTransportGetBody: a body that can be opened again is not read before it
// is sent; one that cannot be after all is not repeated.
func TestTransportGetBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := &closing{Reader: strings.NewReader("content")}, &closing{Reader: strings.NewReader("content")}
		request := newRequest(t, retry.Event, nil)
		request.Body, request.ContentLength = first, 7
		opened := []io.ReadCloser{second}
		request.GetBody = func() (io.ReadCloser, error) {
			if len(opened) == 0 {
				return nil, errors.New("the file is gone")
			}
			body := opened[0]
			opened = opened[1:]
			return body, nil
		}
		b := play(reply{status: 500, code: "internal"})
		g := do(&retry.Transport{Base: b, Policy: steady, MaxBody: 1}, request)
		if g.err != nil || g.status != http.StatusInternalServerError || len(b.sent) != 2 || first.closed != 1 || second.closed != 1 {
			t.Fatalf("%d attempts: %+v", len(b.sent), g)
		}
		for _, s := range b.sent {
			if s.Body != "content" || s.Length != 7 {
				t.Errorf("sent %q of length %d", s.Body, s.Length)
			}
		}
	})
}

// TestTransportBadBodies: a body that cannot be read, or has not the length that
// it should have, is closed, and nothing is sent.
func TestTransportBadBodies(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is broken")
	for _, c := range []struct {
		body     *closing
		declared int64
		want     string
	}{
		{&closing{Reader: strings.NewReader("cont"), err: broken}, 7, "the disk is broken"},
		{&closing{Reader: strings.NewReader("cont")}, 7, "the body has 4 bytes"},
		{&closing{Reader: strings.NewReader("content and more")}, 7, "the body has 16 bytes"},
	} {
		request := newRequest(t, retry.Event, nil)
		request.Body, request.ContentLength = c.body, c.declared
		b := play(reply{status: 200})
		err := do(&retry.Transport{Base: b}, request).err
		if err == nil || !strings.Contains(err.Error(), c.want) || c.body.closed != 1 || len(b.sent) != 0 {
			t.Errorf("%v; closed %d times, %d attempts", err, c.body.closed, len(b.sent))
		}
	}
}

// TestTransportSlowBody: a body that never comes does not outlast the request's
// context.
func TestTransportSlowBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		body, writer := io.Pipe()
		defer writer.Close() //nolint:errcheck // of a pipe
		request := newRequest(t, retry.Event, nil).WithContext(ctx)
		request.Body = body
		b := play(reply{status: 200})
		ended := make(chan error)
		go func() {
			ended <- do(&retry.Transport{Base: b}, request).err
		}()
		synctest.Wait()
		cancel(left)
		if err := <-ended; !errors.Is(err, left) || len(b.sent) != 0 {
			t.Errorf("got %v after %d attempts", err, len(b.sent))
		}
		if _, err := writer.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the body is still open: %v", err)
		}
	})
}

// TestTransportRedelivery: what makes net/http deliver a request again by itself
// is not there: nothing else than the transport opens the body of a request
// with a key again, and the key of one without a body is not seen.
func TestTransportRedelivery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header string
		body   string
		opens  bool
		name   string
	}{
		{"Idempotency-Key", "content", false, "Idempotency-Key"},
		{"X-Idempotency-Key", "content", false, "X-Idempotency-Key"},
		{"Idempotency-Key", "", false, "idempotency-key"},
		{"X-Idempotency-Key", "", false, "x-idempotency-key"},
		{"X-Other", "content", true, "X-Other"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), "POST", "http://example.test/", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(c.header, "order-42")
		var out *http.Request
		transport := retry.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			out = r
			return reply{status: 200}.response(r), nil
		})}
		if g := do(&transport, request); g.err != nil {
			t.Fatal(g.err)
		}
		if opens := out.GetBody != nil; opens != c.opens || !slices.Equal(out.Header[c.name], []string{"order-42"}) || len(out.Header) != 1 {
			t.Errorf("%s with body %q: can be opened again: %v, header %v", c.header, c.body, opens, out.Header)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
