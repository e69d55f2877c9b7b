package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/retry"
)

const (
	goodJSON = `{"steps":[{"id":"say","type":"model","provider":"echo","model":"echo-1","messages":[{"role":"user","content":"${input.text}"}]}],"output":"${steps.say.text}"}`
	goodYAML = `
# Says what it is told.
steps:
  - id: say
    type: model
    provider: echo
    model: echo-1
    messages: [{role: user, content: "${input.text}"}]
output: ${steps.say.text}
`
	brokenYAML = `
steps:
  - {id: say, type: model, provider: echo, model: echo-1, mesages: []}
  - {id: say, type: transform, value: "${input.}"}
outptu: 1
`
)

// flowFile writes a definition.
func flowFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlowValidate(t *testing.T) {
	t.Parallel()
	good, alike, broken := flowFile(t, "good.json", goodJSON), flowFile(t, "good.yaml", goodYAML), flowFile(t, "broken.yml", brokenYAML)
	code, stdout, stderr := invoke(t, "flow", "validate", good, alike)
	if code != exitOK || stdout != good+": valid\n"+alike+": valid\n" || stderr != "" {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, stderr = invoke(t, "flow", "validate", good, broken)
	if code != exitRejected || !strings.Contains(stderr, "1 of 2") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	for _, want := range []string{good + ": valid\n", broken + ": outptu: ", broken + ": steps[0].mesages: ", broken + ": steps[0].messages"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	if code, stdout, _ := invoke(t, "flow", "validate", flowFile(t, "x.json", `{"steps":[],"steps":[]}`)); code != exitRejected || !strings.Contains(stdout, "repeated") {
		t.Errorf("a repeated name: exit %d, %q", code, stdout)
	}
	if code, _, stderr := invoke(t, "flow", "validate", filepath.Join(t.TempDir(), "none.yaml")); code != exitFailure || !strings.Contains(stderr, "none.yaml") {
		t.Errorf("no file: exit %d, %q", code, stderr)
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"flow", "validate", "-"}, streams{strings.NewReader(goodJSON), &out, &out}); code != exitOK {
		t.Errorf("standard input: exit %d, %s", code, &out)
	}
}

// TestFlowPush publishes to a real server.
func TestFlowPush(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	push := func(file, key string) (int, string, string) {
		return invoke(t, "flow", "push", file, "--slug", "greet", "--url", r.URL, "--key", key)
	}
	good, alike, broken := flowFile(t, "good.json", goodJSON), flowFile(t, "good.yaml", goodYAML), flowFile(t, "broken.yml", brokenYAML)
	for _, c := range []struct{ file, said string }{
		{good, "greet: published version 1\n"}, {good, "greet: is equal to version 1\n"}, {alike, "greet: is equal to version 1\n"},
	} {
		if code, stdout, stderr := push(c.file, r.Setup.ProjectKey); code != exitOK || stdout != c.said || stderr != "" {
			t.Errorf("exit %d, %q, %q; want %q", code, stdout, stderr, c.said)
		}
	}
	code, stdout, stderr := push(broken, r.Setup.ProjectKey)
	if code != exitRejected || !strings.Contains(stdout, "steps[0].mesages: ") || !strings.Contains(stdout, "outptu: ") || !strings.Contains(stderr, "invalid_request") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	for _, key := range []string{r.Setup.ServerKey, "apk_unknown"} {
		if code, stdout, stderr := push(good, key); code != exitFailure || stdout != "" || strings.Contains(stderr, key) {
			t.Errorf("exit %d, %q, %q", code, stdout, stderr)
		}
	}
	if code, _, stderr := invoke(t, "flow", "push", good, "--slug", "greet", "--url", r.URL, "--key", ""); code != exitUsage || !strings.Contains(stderr, "ACTIONPULSE_PROJECT_KEY") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	code, stdout, _ = invoke(t, "flow", "push", good, "--slug", "greet", "--url", r.URL, "--key", r.Setup.ProjectKey, "--json")
	if code != exitOK || !strings.Contains(stdout, `"latest_version": 1`) {
		t.Errorf("exit %d, %q", code, stdout)
	}
}

// TestFlowPushUnheard: a publication has no key, so it is not repeated when no
// answer came, and the message says what to do.
func TestFlowPushUnheard(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requests.Add(1)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	std := streams{strings.NewReader(""), &stdout, &stderr}
	c := flowPush{File: flowFile(t, "f.json", goodJSON), Slug: "greet", Server: flowServer{URL: server.URL, Key: "apk_secret"}}
	code := report(std, c.run(t.Context(), std, retry.Policy{}))
	if code != exitFailure || requests.Load() != 1 || !strings.Contains(stderr.String(), "run the same command again") {
		t.Errorf("exit %d after %d requests: %s", code, requests.Load(), &stderr)
	}
}
