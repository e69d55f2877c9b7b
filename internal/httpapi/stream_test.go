package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
)

// streamRoute answers with what send writes.
func streamRoute(send func(w io.Writer) error) route {
	return route{
		method: "GET", path: "/test/stream", access: access{open: true}, effect: reads,
		handle: func(*service, *exchange) (answer, error) {
			return answer{status: http.StatusOK, contentType: "text/csv; charset=utf-8", stream: send}, nil
		},
	}
}

func TestStream(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 1<<14)
	b := setupWithin(t, patience, streamRoute(func(w io.Writer) error {
		_, err := io.WriteString(w, long)
		return err
	}))
	r := b.do(t, request{method: "GET", path: "/test/stream"})
	if r.status != http.StatusOK || r.body != long || r.header.Get("Content-Type") != "text/csv; charset=utf-8" || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d, %d bytes, %v", r.status, len(r.body), r.header)
	}
	r = b.do(t, request{method: "HEAD", path: "/test/stream"})
	if r.status != http.StatusOK || r.body != "" || r.header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("HEAD: %+v", r)
	}
	if n := b.counted(t, "/test/stream", "ok", "200"); n != 2 {
		t.Errorf("%v counted", n)
	}
}

// TestStreamThatFailsIsCut: who reads to the end has all of it, or an error.
func TestStreamThatFailsIsCut(t *testing.T) {
	for name, end := range map[string]func() error{
		"error": func() error { return errors.New("the store says hunter2") },
		"panic": func() error { panic("hunter2") },
	} {
		for _, size := range []int{0, 10, 1 << 16} {
			b := setupWithin(t, patience, streamRoute(func(w io.Writer) error {
				if _, err := io.WriteString(w, strings.Repeat("x", size)); err != nil {
					return err
				}
				return end()
			}))
			response, err := http.Get(b.url + "/test/stream")
			if err != nil {
				continue // cut before the head had left
			}
			text, err := io.ReadAll(response.Body)
			if err == nil || response.Body.Close() != nil {
				t.Errorf("%s after %d bytes: %d bytes and a proper end", name, size, len(text))
			}
			if strings.Contains(string(text), "hunter2") || !strings.Contains(b.log.String(), "hunter2") {
				t.Errorf("%s: sent %q, logged %s", name, text, b.log.String())
			}
			if b.counted(t, "/test/stream", "no_answer", "200") != 1 {
				t.Errorf("%s: not counted", name)
			}
		}
	}
}

// TestRefusedAs: a route may have its own code for a body that is not valid, and
// JSON that is none stays what it is.
func TestRefusedAs(t *testing.T) {
	b := setupWithin(t, patience, route{
		method: "POST", path: "/test/own", access: access{open: true}, effect: mutates,
		body: jsonBody(1 << 10).refusedAs(api.CodeInvalidRequest),
		handle: func(_ *service, x *exchange) (answer, error) {
			v, err := decodeOptional[api.NewCreditType](x)
			if err != nil {
				return answer{}, err
			}
			return jsonAnswer(http.StatusOK, v)
		},
	})
	for body, code := range map[string]api.Code{
		`{"allow_negative":"yes"}`: api.CodeInvalidRequest, `{"other":1}`: api.CodeInvalidRequest, `[]`: api.CodeInvalidRequest,
		`{`: api.CodeInvalidJSON, ` `: api.CodeInvalidJSON,
	} {
		wantRefusal(t, b.do(t, request{path: "/test/own", body: body}), code)
	}
	for _, body := range []string{"", "{}", `{"allow_negative":null}`} {
		if r := b.do(t, request{path: "/test/own", body: body}); r.status != http.StatusOK {
			t.Errorf("%q: %d %s", body, r.status, r.body)
		}
	}
}
