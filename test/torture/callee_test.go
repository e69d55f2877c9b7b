package torture_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// callee is what flows call, as a service and as a provider of models. It
// outlives every server and counts what comes to it.
type callee struct {
	url string

	mu sync.Mutex
	// calls counts by derived key.
	calls map[string]int
	// aside says that who calls now runs on a copy of the folder.
	aside bool
}

// maxThought bounds how long an answer of the callee takes.
const maxThought = 60 * time.Millisecond

func (x *torture) startCallee() *callee {
	c := &callee{calls: map[string]int{}}
	server := httptest.NewServer(c)
	x.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// ServeHTTP implements http.Handler. An answer takes a while, so that servers
// are killed in the middle of calls.
func (c *callee) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	key := r.Header.Get("Idempotency-Key")
	n := c.called(key)
	timer := time.NewTimer(rand.N(maxThought))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return
	}
	answer := map[string]any{"n": n}
	if r.URL.Path == "/v1/chat/completions" {
		answer = map[string]any{
			"id": "c", "model": "m", "usage": map[string]int{"prompt_tokens": 10, "completion_tokens": 5},
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": fmt.Sprint(n)}}},
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the server may be dead
}

// called counts a call. What a copy of the folder has not finished, its server
// calls once more, which the folder itself knows nothing of.
func (c *callee) called(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.aside {
		c.calls[key]++
	}
	return c.calls[key]
}

// putAside says whether calls come from a copy of the folder from now on.
func (c *callee) putAside(aside bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aside = aside
}

// count is how often a derived key came.
func (c *callee) count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[key]
}

// tortured are the flows that are run. Each charges 1 for a run. The steps named
// once are called once at most, those named again may be called again when the
// server was killed meanwhile.
var tortured = []struct {
	slug, definition string
	once, again      []string
}{
	{
		"local", `{"steps":[{"id":"s","type":"transform","value":"${input.n}"}],"output":"${steps.s.output}","price":{"per_run":"1"}}`,
		nil, nil,
	},
	{
		"models", `{"steps":[{"id":"a","type":"model","provider":"local","model":"m","messages":[{"role":"user","content":"x"}]},
			{"id":"b","type":"model","provider":"local","model":"m","messages":[{"role":"user","content":"${steps.a.text}"}]}],
			"output":"${steps.b.text}","price":{"per_run":"1","tokens":{"*":{"input":"1","output":"1"}}},"limits":{"budget":"1"}}`,
		[]string{"a", "b"},
		nil,
	},
	{
		"service", `{"steps":[{"id":"c","type":"http","method":"POST","url":"URL/c","on_interrupt":"retry","retries":5},
			{"id":"d","type":"http","method":"POST","url":"URL/d"}],"output":"${steps.d.body.n}","price":{"per_run":"1"}}`,
		[]string{"d"},
		[]string{"c"},
	},
	{
		"list", `{"steps":[{"id":"w","type":"wait","for":"20ms"},
			{"id":"each","type":"parallel","over":"${[1,2,3]}","output":"${steps.e.text}","steps":[
			{"id":"e","type":"model","provider":"local","model":"m","on_interrupt":"retry","retries":5,"messages":[{"role":"user","content":"x"}]}]}],
			"output":"${steps.each.output}","price":{"per_run":"1"}}`,
		nil,
		[]string{"e:0", "e:1", "e:2"},
	},
}
