package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// callee is what flows call: an OpenAI-compatible server at /v1, and a service
// that answers POSTs at any other path. It can hold its answers back.
type callee struct {
	// URL is without a path.
	URL string
	// called has a derived key for each call that has come.
	called chan string
	// gate lets one call be answered for each value, and all once it is closed.
	gate chan struct{}

	mu    sync.Mutex
	keys  []string
	texts []string
	// status is what it answers with.
	status int
}

// newCallee starts a callee that answers at once, or one that holds back.
func newCallee(t *testing.T, holds bool) *callee {
	t.Helper()
	c := &callee{called: make(chan string, 1000), gate: make(chan struct{}), status: http.StatusOK}
	if !holds {
		close(c.gate)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// calls are the derived keys of all that came, in order.
func (c *callee) calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.keys)
}

// bodies are what came.
func (c *callee) bodies() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.texts, "\n")
}

// refuse has all further calls answered with a status.
func (c *callee) refuse(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// ServeHTTP implements http.Handler.
func (c *callee) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	c.mu.Lock()
	c.keys, c.texts = append(c.keys, r.Header.Get("Idempotency-Key")), append(c.texts, string(content))
	status := c.status
	c.mu.Unlock()
	c.called <- r.Header.Get("Idempotency-Key")
	select {
	case <-c.gate:
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "callee-1")
	w.WriteHeader(status)
	if status != http.StatusOK {
		_, _ = io.WriteString(w, `{"error":{"message":"refused by the callee"}}`) // the flow says what it got
		return
	}
	_, _ = io.WriteString(w, replyTo(content)) // as above
}

// replyTo is a chat completion that repeats the last message.
func replyTo(content []byte) string {
	var asked struct {
		Model    string `json:"model"`
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	said := "none"
	if json.Unmarshal(content, &asked) == nil && len(asked.Messages) > 0 {
		said = asked.Messages[len(asked.Messages)-1].Content
	}
	text, _ := json.Marshal(said) // a string
	return fmt.Sprintf(`{"id":"c1","model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":400}}}`, asked.Model, text)
}

// provides makes the callee the provider "local" of the project.
func (c *callee) provides(t *testing.T, r *apptest.Running) {
	t.Helper()
	s := owner(r).call(t, "PUT", project(r)+"/model-providers/local", fmt.Sprintf(`{"base_url":%q,"api_key":"sk-secret"}`, c.URL+"/v1"))
	if s.status != http.StatusOK && s.status != http.StatusCreated {
		t.Fatalf("%d %s", s.status, s.raw)
	}
}

// private lets flows call this machine.
const private = "--flows.allow_private"

// withCallee runs a test on both engines, each with a callee of its own that is
// the provider "local".
func withCallee(t *testing.T, holds bool, test func(t *testing.T, r *apptest.Running, c *callee)) {
	t.Helper()
	onBothEnginesWith(t, []string{private}, func(t *testing.T, r *apptest.Running) {
		c := newCallee(t, holds)
		c.provides(t, r)
		test(t, r, c)
	})
}

// next waits for the next call.
func (c *callee) next(t *testing.T) string {
	t.Helper()
	select {
	case key := <-c.called:
		return key
	case <-t.Context().Done():
		t.Fatal("nobody calls")
		return ""
	}
}
