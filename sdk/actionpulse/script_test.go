package actionpulse_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// seen is a request as a server has received it.
type seen struct {
	method, path, query, body string
	header                    http.Header
}

// script is a server that plays answers one after another, the last one for
// ever, and notes what it was sent.
type script struct {
	*httptest.Server
	mu      sync.Mutex
	answers []http.HandlerFunc
	got     []seen
}

func play(t *testing.T, answers ...http.HandlerFunc) *script {
	t.Helper()
	s := &script{answers: answers}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP plays the next answer.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.got = append(s.got, seen{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header})
	answer := s.answers[min(len(s.got), len(s.answers))-1]
	s.mu.Unlock()
	answer(w, r)
}

func (s *script) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

// says answers with a status and a body.
func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// something is an answer with a member that each kind of answer has, but for
// that to a batch, which accounts for what was sent.
const something = `{"id":"x-1","movement":{"id":"m-1"},"execution":{"id":"x-1","status":"succeeded"},"items":[],"flow":{"slug":"f"},
	"customer":"ada","customers":[],"rates":[],"hold":{"id":"h-1"},"access_token":"t","status":"ok","key":"k","slug":"f","marker":{"id":"m"},
	"unit":{"id":"u"},"name":"n","balances":{},"steps":[],"stored_through":"2026-05-01T00:00:00Z","queue_ok":true,"user_id":"u","organization_id":"o","external_user_id":"ada","month":"2026-11"}`

// oneTaken is the answer to a batch of one event.
const oneTaken = `{"accepted":1,"duplicates":0,"rejected":[]}`

// answerTo is what an operation can be answered with.
func answerTo(operation string) string {
	switch operation {
	case "track":
		return oneTaken
	case "exportMovements":
		return `{"id":"m-1"}`
	case "replay":
		return `{"duplicate":false}`
	case "getReplayChunk":
		return `[{"type":4}]`
	default:
		return something
	}
}

// refuses answers with an error in the form of the API; details has further
// members, with a comma before each.
func refuses(status int, code, details string, header ...string) http.HandlerFunc {
	return says(status, fmt.Sprintf(
		`{"error":{"code":%q,"message":"no","request_id":"r-1","details":{"retryable":false%s}}}`, code, details), header...)
}

// hangsUp closes the connection without an answer.
func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// cutsShort begins a good answer and does not end it.
func cutsShort(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"movement":`)
	panic(http.ErrAbortHandler)
}

// hasty repeats without waiting, and notes how long it would have waited.
type hasty struct {
	mu    sync.Mutex
	waits []time.Duration
}

func (h *hasty) policy() retry.Policy {
	return retry.Policy{MaxAttempts: 3, Sleep: func(ctx context.Context, d time.Duration) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waits = append(h.waits, d)
		return context.Cause(ctx)
	}}
}

// hurried are clients that do not wait between attempts.
func hurried(t *testing.T, server string, options ...actionpulse.Option) *clients {
	t.Helper()
	return newClients(t, server, append([]actionpulse.Option{actionpulse.WithRetry((&hasty{}).policy())}, options...)...)
}
