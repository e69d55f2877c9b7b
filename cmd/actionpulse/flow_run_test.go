package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// fakeExecutor keeps the contract of execute: a key names one execution, and a
// repeat with other bytes is a conflict. What it says of each request in turn
// is in script; the last entry goes on for ever.
type fakeExecutor struct {
	script []string

	mu       sync.Mutex
	requests int
	// bodies are the first body of each key, and so the executions.
	bodies map[string]string
	faults []string
}

// answers are what a fake server says, by the names used in scripts.
var answers = map[string]struct {
	status int
	header map[string]string
	body   string
}{
	"succeeded": {200, nil, `{"execution":{"id":"e1","status":"succeeded","output":{"n":1.50},"error":null}}`},
	"failed":    {200, nil, `{"execution":{"id":"e1","status":"failed","output":null,"error":{"code":"model_error","message":"the model said no"}}}`},
	"cancelled": {200, nil, `{"execution":{"id":"e1","status":"cancelled","output":null,"error":null}}`},
	"running":   {200, map[string]string{"Retry-After": "7"}, `{"execution":{"id":"e1","status":"running"}}`},
	"queued":    {202, nil, `{"execution":{"id":"e1","status":"queued"}}`},
	"died":      {502, nil, `{"error":{"code":"model_error","message":"the model said no","details":{"execution_id":"e1","retryable":false}}}`},
	"proxy":     {502, nil, `<html>`},
	"cut":       {200, nil, `{"execution":{"id":"e1","sta`},
	"stranger":  {200, nil, `{"hello":"world"}`},
	"limited":   {429, map[string]string{"Retry-After": "3"}, `{"error":{"code":"rate_limited","message":"slower","details":{}}}`},
	"internal":  {500, nil, `{"error":{"code":"internal","message":"failed","details":{}}}`},
	"poor":      {402, nil, `{"error":{"code":"insufficient_credits","message":"not enough for apk_secret","details":{"key":"free"}}}`},
	"none":      {404, nil, `{"error":{"code":"flow_not_found","message":"none","details":{}}}`},
	"conflict":  {409, nil, `{"error":{"code":"idempotency_conflict","message":"other work","details":{"unit":{"id":"e0"},"execution_id":"e0"}}}`},
}

func (f *fakeExecutor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch say := f.next(r, string(body)); say {
	case "lost":
		panic(http.ErrAbortHandler)
	default:
		a := answers[say]
		for name, value := range a.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body) // who has left hears nothing
	}
}

// next notes a request and returns what to say to it.
func (f *fakeExecutor) next(r *http.Request, body string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := min(f.requests, len(f.script)-1)
	f.requests++
	key := r.Header.Get("Idempotency-Key")
	if first, known := f.bodies[key]; known && first != body {
		f.faults = append(f.faults, fmt.Sprintf("%s was sent with %s, then with %s", key, first, body))
	} else if !known {
		f.bodies[key] = body
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/operations/execute" || r.Header.Get("Authorization") != "Bearer apk_secret" ||
		r.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(r.Header.Get("Prefer"), "wait=") {
		f.faults = append(f.faults, fmt.Sprintf("%s %s %v", r.Method, r.URL, r.Header))
	}
	return f.script[at]
}

// ran is what came of a run.
type ran struct {
	code           int
	stdout, stderr string
	waits          []time.Duration
	server         *fakeExecutor
}

// runAgainst runs a command against a script, without waiting.
func runAgainst(t *testing.T, c flowRun, script ...string) ran {
	t.Helper()
	out := ran{server: &fakeExecutor{script: script, bodies: map[string]string{}}}
	server := httptest.NewServer(out.server)
	t.Cleanup(server.Close)
	c.Slug, c.Key, c.Input = "greet", "order-42:greet", filepath.Join(t.TempDir(), "input.json")
	c.Server = flowServer{URL: server.URL, Key: "apk_secret"}
	if err := os.WriteFile(c.Input, []byte("{ \"n\": 1.50,\n \"text\": \"<é>\" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	std := streams{strings.NewReader(""), &stdout, &stderr}
	policy := repeats(std)
	policy.Delays.Rand = func() float64 { return 0.5 }
	policy.Sleep = func(_ context.Context, d time.Duration) error {
		out.waits = append(out.waits, d)
		return nil
	}
	err := c.run(t.Context(), std, policy)
	out.code = report(std, err)
	out.stdout, out.stderr = stdout.String(), stderr.String()
	if strings.Contains(out.stdout+out.stderr, "apk_secret") {
		t.Errorf("the key is shown: %s %s", out.stdout, out.stderr)
	}
	if len(out.server.faults) > 0 || len(out.server.bodies) != 1 {
		t.Errorf("%v; %d keys", out.server.faults, len(out.server.bodies))
	}
	return out
}

// TestFlowRun: whatever becomes of the answers, one key and one body are sent
// until the end of the execution is known, which decides the exit code.
func TestFlowRun(t *testing.T) {
	t.Parallel()
	second := time.Second
	for name, c := range map[string]struct {
		command flowRun
		script  []string
		code    int
		// waits are those between requests.
		waits []time.Duration
		// shown is the status that is printed; empty if nothing is.
		shown string
	}{
		"at once":        {script: []string{"succeeded"}, code: exitOK, shown: "succeeded"},
		"lost answers":   {script: []string{"proxy", "cut", "stranger", "internal", "succeeded"}, code: exitOK, shown: "succeeded", waits: []time.Duration{second, 2 * second, 4 * second, 8 * second}},
		"running":        {script: []string{"proxy", "running", "running", "succeeded"}, code: exitOK, shown: "succeeded", waits: []time.Duration{second, 7 * second, 7 * second}},
		"limited":        {script: []string{"limited", "succeeded"}, code: exitOK, shown: "succeeded", waits: []time.Duration{3 * second}},
		"died":           {script: []string{"died", "failed"}, code: exitExecution, shown: "failed"},
		"died unheard":   {script: []string{"proxy", "failed"}, code: exitExecution, shown: "failed", waits: []time.Duration{second}},
		"died, twice":    {script: []string{"died"}, code: exitExecution},
		"cancelled":      {script: []string{"running", "cancelled"}, code: exitExecution, shown: "cancelled", waits: []time.Duration{7 * second}},
		"async":          {command: flowRun{Async: true}, script: []string{"proxy", "queued"}, code: exitOK, shown: "queued", waits: []time.Duration{second}},
		"async and wait": {command: flowRun{Async: true, Wait: true}, script: []string{"queued", "queued", "running", "succeeded"}, code: exitOK, shown: "succeeded", waits: []time.Duration{second, second, 7 * second}},
		"async failed":   {command: flowRun{Async: true}, script: []string{"failed"}, code: exitExecution, shown: "failed"},
		"poor":           {script: []string{"poor"}, code: exitFailure},
		"no flow":        {script: []string{"none"}, code: exitFailure},
		"conflict":       {script: []string{"conflict"}, code: exitFailure},
		"gave up":        {script: []string{"internal"}, code: exitGaveUp, waits: []time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 30 * second, 30 * second, 30 * second, 30 * second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runAgainst(t, c.command, c.script...)
			if got.code != c.code || fmt.Sprint(got.waits) != fmt.Sprint(c.waits) {
				t.Errorf("exit %d, waits %v; want %d, %v\n%s", got.code, got.waits, c.code, c.waits, got.stderr)
			}
			var printed struct{ Status string }
			if c.shown == "" {
				if got.stdout != "" {
					t.Errorf("printed %s", got.stdout)
				}
			} else if err := json.Unmarshal([]byte(got.stdout), &printed); err != nil || printed.Status != c.shown {
				t.Errorf("printed %s: %v", got.stdout, err)
			}
			if c.script[0] == "conflict" && got.server.requests != 1 {
				t.Errorf("a conflict was sent %d times", got.server.requests)
			}
		})
	}
}

// TestFlowRunLosesNothing: connections that break after the work was done.
func TestFlowRunLosesNothing(t *testing.T) {
	t.Parallel()
	got := runAgainst(t, flowRun{For: "ada", Version: 3}, "lost", "lost", "lost", "lost", "lost", "lost", "succeeded")
	if got.code != exitOK || !strings.Contains(got.stdout, `"n": 1.50`) || got.server.requests < 7 {
		t.Errorf("exit %d after %d requests: %s %s", got.code, got.server.requests, got.stdout, got.stderr)
	}
	const want = `{"flow":"greet","version":3,"customer":"ada","input":{"n":1.50,"text":"<é>"},"execution_mode":"sync"}` + "\n"
	if body := got.server.bodies["order-42:greet"]; body != want {
		t.Errorf("sent %s\nwant %s", body, want)
	}
}

// TestFlowRunInterrupted: ctrl-C ends the command, and says that the run goes
// on.
func TestFlowRunInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body) // until then the server does not see that the client has left
		if err != nil {
			t.Error(err)
		}
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	std := streams{strings.NewReader(`{}`), &stdout, &stderr}
	c := flowRun{Slug: "greet", Input: "-", Key: "k", Server: flowServer{URL: server.URL, Key: "apk_secret"}}
	code := report(std, c.run(ctx, std, retry.Policy{}))
	if code != exitInterrupted || stdout.Len() != 0 || !strings.Contains(stderr.String(), "run the same command again") {
		t.Errorf("exit %d: %s %s", code, &stdout, &stderr)
	}
}

func TestFlowRunUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no key":         {"greet", "--input", "-"},
		"no input":       {"greet", "--idempotency-key", "k"},
		"no project key": {"greet", "--input", broken, "--idempotency-key", "k", "--key", ""},
		"a key with NUL": {"greet", "--input", broken, "--idempotency-key", "k", "--key", "apk_\x00"},
		"broken input":   {"greet", "--input", broken, "--idempotency-key", "k", "--key", "apk_secret"},
		"an address":     {"greet", "--input", broken, "--idempotency-key", "k", "--key", "apk_secret", "--url", "http://u:apk_secret@h"},
		"two of stdin":   {"greet", "--input", "-", "--context", "-", "--idempotency-key", "k", "--key", "apk_secret"},
	} {
		code, stdout, stderr := invoke(t, append([]string{"flow", "run"}, args...)...)
		if code != exitUsage || stdout != "" || strings.Contains(stderr, "apk_secret") {
			t.Errorf("%s: exit %d, %q, %q", name, code, stdout, stderr)
		}
	}
}
