package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLabProxy: the first line is the address, a fault befalls what matches and
// nothing else, the log has a line for each request, and the end is a summary.
func TestLabProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	log := filepath.Join(t.TempDir(), "fates.jsonl")
	ctx, stop := context.WithCancel(t.Context())
	stdout, w := io.Pipe()
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		args := []string{"lab", "proxy", "--upstream", server.URL, "--seed", "7", "--faults", "429=1:2s", "--match", "POST /v1/*", "--log", log, "--json"}
		ended <- run(ctx, args, streams{strings.NewReader(""), w, &stderr})
		w.Close() //nolint:errcheck // a pipe's end
	}()
	lines := bufio.NewScanner(stdout)
	var began struct {
		URL  string `json:"url"`
		Seed uint64 `json:"seed"`
	}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &began) != nil || began.Seed != 7 {
		t.Fatalf("began with %q, %s", lines.Text(), stderr.String())
	}
	for path, want := range map[string]int{"/v1/track": 429, "/healthz": 200} {
		response, err := http.Post(began.URL+path, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want || response.Body.Close() != nil {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
	stop()
	var counts map[string]int
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &counts) != nil || counts["requests"] != 2 || counts["429"] != 1 || counts["passed"] != 1 {
		t.Errorf("ended with %q", lines.Text())
	}
	if code := <-ended; code != exitOK || stderr.Len() > 0 {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("log %q, %v", text, err)
	}
}

func TestLabWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"proxy"},
		{"proxy", "--upstream", "localhost"},
		{"proxy", "--upstream", "http://127.0.0.1:1", "--faults", "flood=1"},
		{"proxy", "--upstream", "http://127.0.0.1:1", "--match", "POST"},
		{"proxy", "--upstream", "http://127.0.0.1:1", "--replay", "/nonexistent"},
		{"client"},
		{"client", "--profile", "magic", "--", "true"},
		{"client", "--scale", "0", "--", "true"},
		{"client", "--", "/nonexistent"},
		{"client", "--attach", "--", "true"},
	} {
		code, stdout, stderr := invoke(t, append([]string{"lab"}, args...)...)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "actionpulse: ") {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// TestLabClient: a command that sends nothing has broken no rule and passed
// none; the duties, scenarios and rules are told without a command.
func TestLabClient(t *testing.T) {
	code, stdout, stderr := invoke(t, "lab", "client", "--scenario", "accepted", "--seed", "7", "--report", "json", "--", "true")
	var result struct {
		Seed   uint64         `json:"seed"`
		Counts map[string]int `json:"counts"`
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || code != exitOK || stderr != "" {
		t.Fatalf("exit %d, %v, %s%s", code, err, stdout, stderr)
	}
	if n := result.Counts; n["pass"] != 0 || n["fail"] != 0 || n["not_tested"] == 0 || result.Seed != 7 {
		t.Errorf("%s", stdout)
	}
	code, stdout, _ = invoke(t, "lab", "client", "--profile", "keyed", "--explain")
	if code != exitOK || !strings.Contains(stdout, "give-up") || !strings.Contains(stdout, "key-differs-per-unit") || !strings.Contains(stdout, "order-2") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}
