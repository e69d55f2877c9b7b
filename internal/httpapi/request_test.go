package httpapi

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
)

// request is one request of a scenario.
type request struct {
	method  string
	path    string
	secret  string
	body    string
	headers map[string]string
}

// response is an answer with its body read.
type response struct {
	status int
	header http.Header
	body   string
	// closing says that the connection ends with it.
	closing bool
}

// refusal is what the envelope says; ok is false if the body is none.
func (r response) refusal() (e envelopeError, ok bool) {
	var env envelope
	d := json.NewDecoder(strings.NewReader(r.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&env); err != nil || env.Error.Code == "" {
		return envelopeError{}, false
	}
	return env.Error, true
}

func (b *bundle) do(t testing.TB, q request) response {
	t.Helper()
	method := q.method
	if method == "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	if q.secret != "" {
		r.Header.Set("Authorization", "Bearer "+q.secret)
	}
	for name, value := range q.headers {
		r.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, answer)
}

func read(t testing.TB, answer *http.Response) response {
	t.Helper()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response{answer.StatusCode, answer.Header, string(body), answer.Close}
}

// dial opens a connection of its own.
func (b *bundle) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// send writes bytes as they are.
func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// receive reads one answer.
func receive(t testing.TB, c net.Conn, method string) response {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return read(t, answer)
}

var uuidv7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// wantRefusal checks all that every refusal promises, of a code with its usual
// status.
func wantRefusal(t testing.TB, r response, code api.Code) envelopeError {
	t.Helper()
	return wantSpec(t, r, api.Lookup(code))
}

// wantSpec checks all that a row of the catalogue promises.
func wantSpec(t testing.TB, r response, spec api.Spec) envelopeError {
	t.Helper()
	code := spec.Code
	e, ok := r.refusal()
	if !ok {
		t.Fatalf("status %d, body %q: not an envelope; want %s", r.status, r.body, code)
	}
	if e.Code != code || r.status != spec.Status {
		t.Fatalf("%d %s (%s), want %d %s", r.status, e.Code, e.Message, spec.Status, code)
	}
	if e.Message == "" || e.RequestID == "" || e.RequestID != r.header.Get("X-Request-Id") {
		t.Errorf("message %q, request id %q against header %q", e.Message, e.RequestID, r.header.Get("X-Request-Id"))
	}
	if e.Details["retryable"] != spec.Retryable {
		t.Errorf("retryable is %v, want %v", e.Details["retryable"], spec.Retryable)
	}
	want := "false"
	if spec.ShouldRetry {
		want = "true"
	}
	if got := r.header.Get("X-Should-Retry"); got != want {
		t.Errorf("X-Should-Retry is %q, want %s", got, want)
	}
	if wait := r.header.Get("Retry-After"); (code == api.CodeRateLimited || code == api.CodeUnavailable) != (wait != "") {
		t.Errorf("Retry-After is %q", wait)
	}
	if kind := r.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("Content-Type is %q", kind)
	}
	return e
}
