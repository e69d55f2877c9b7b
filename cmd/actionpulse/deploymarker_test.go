package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	ciToken   = "apc_secret"
	ciProject = "0198b1f0-0000-7000-8000-000000000001"
)

// fakeMarkers keeps the contract of deploy markers. What it does before it
// answers each request in turn is in script.
type fakeMarkers struct {
	script []string

	mu       sync.Mutex
	requests int
	// bodies are the first body of each key.
	bodies map[string]string
	// change is applied to the markers of replays.
	change func(marker map[string]any)
	faults []string
}

func (f *fakeMarkers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	key := r.Header.Get("Idempotency-Key")
	if r.Method != http.MethodPost || r.URL.Path != "/api/v1/projects/"+ciProject+"/release-markers/deploy" ||
		r.Header.Get("Authorization") != "Bearer "+ciToken || r.Header.Get("Content-Type") != "application/json" || len(key) < 8 {
		f.faults = append(f.faults, fmt.Sprint(r.Method, r.URL, r.Header))
	}
	say := ""
	if f.requests < len(f.script) {
		say = f.script[f.requests]
	}
	f.requests++
	if a, scripted := answers[say]; scripted {
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body) // who has left hears nothing
		return
	}
	status, answer := f.mark(key, string(body))
	if say == "lost" {
		panic(http.ErrAbortHandler)
	}
	if status == http.StatusOK {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // who has left hears nothing
}

// mark keeps the marker of a key, or finds it.
func (f *fakeMarkers) mark(key, body string) (status int, answer map[string]any) {
	first, taken := f.bodies[key]
	if !taken {
		first, f.bodies[key] = body, body
	}
	var was, is map[string]any
	if json.Unmarshal([]byte(first), &was) != nil || json.Unmarshal([]byte(body), &is) != nil {
		f.faults = append(f.faults, body)
	}
	var differs []string
	for _, name := range []string{"commit", "environment", "metadata", "title", "ts", "url", "version"} {
		if fmt.Sprint(was[name]) != fmt.Sprint(is[name]) {
			differs = append(differs, name)
		}
	}
	if len(differs) > 0 {
		return http.StatusConflict, map[string]any{"error": map[string]any{
			"code": "validation_failed", "message": "the Idempotency-Key was already used with a different request body",
			"details": map[string]any{"retryable": false, "header": "Idempotency-Key", "differs": differs},
		}}
	}
	marker := map[string]any{"id": "m1", "project_id": ciProject, "ts": "2026-05-01T10:00:00Z", "created_at": "2026-05-01T10:00:00Z", "source": "deploy"}
	maps.Copy(marker, was)
	if !taken {
		return http.StatusCreated, marker
	}
	if f.change != nil {
		f.change(marker)
	}
	return http.StatusOK, marker
}

// github are the variables of a step in GitHub Actions.
var github = map[string]string{
	"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_RUN_ID": "16", "GITHUB_JOB": "deploy", "GITHUB_SERVER_URL": "https://github.com",
	"GITHUB_SHA": "6dcb09b5b57875f334f61aebed695e2e4193db5e", "GITHUB_RUN_ATTEMPT": "1",
}

// ciStep is one attempt of a step of a pipeline.
type ciStep struct {
	command deployMarkerCommand
	// variables are those of the system, changes what else is set.
	variables, changes map[string]string
	// after is how long after the marker of the fake server it is.
	after time.Duration
}

// stepEnd is what came of it.
type stepEnd struct {
	code           int
	stdout, stderr string
	waits          []time.Duration
}

func (f *fakeMarkers) run(t *testing.T, s ciStep) (out stepEnd) {
	t.Helper()
	server := httptest.NewServer(f)
	defer server.Close()
	variables := maps.Clone(s.variables)
	if variables == nil {
		variables = map[string]string{}
	}
	variables["ACTIONPULSE_CI_TOKEN"] = ciToken
	maps.Copy(variables, s.changes)
	c := s.command
	c.URL, c.Project = server.URL, ciProject
	if c.Version == "" {
		c.Version = "1.4.2"
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 10
	}
	var stdout, stderr bytes.Buffer
	std := streams{strings.NewReader(""), &stdout, &stderr}
	policy := repeats(std)
	policy.Delays.Rand = func() float64 { return 0.5 }
	policy.Sleep = func(_ context.Context, d time.Duration) error {
		out.waits = append(out.waits, d)
		return nil
	}
	out.code = report(std, c.run(t.Context(), deployIO{
		streams: std, policy: policy,
		lookup: func(name string) (string, bool) { value, set := variables[name]; return value, set },
		now:    func() time.Time { return time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC).Add(s.after) },
	}))
	out.stdout, out.stderr = stdout.String(), stderr.String()
	if strings.Contains(out.stdout+out.stderr, ciToken) {
		t.Errorf("the token is shown: %s %s", out.stdout, out.stderr)
	}
	if len(f.faults) > 0 {
		t.Errorf("%v", f.faults)
	}
	return out
}

// TestDeployMarkerOnce: lost answers, proxies and a step that is run again make
// one marker, and each end is a success.
func TestDeployMarkerOnce(t *testing.T) {
	t.Parallel()
	f := &fakeMarkers{script: []string{"proxy", "lost", "internal", "limited"}, bodies: map[string]string{}}
	first := f.run(t, ciStep{variables: github})
	if first.code != exitOK || !strings.HasPrefix(first.stdout, "already marked  1.4.2 in production at 2026-05-01T10:00:00Z\nid              m1\n") {
		t.Errorf("%+v", first)
	}
	again := f.run(t, ciStep{variables: github, changes: map[string]string{"GITHUB_RUN_ATTEMPT": "2"}, command: deployMarkerCommand{JSON: true}})
	var printed struct {
		Replayed bool
		Key      string `json:"idempotency_key"`
		Marker   struct{ ID, Commit string }
		Warnings []string
	}
	if err := json.Unmarshal([]byte(again.stdout), &printed); err != nil || again.code != exitOK || again.stderr != "" {
		t.Fatalf("%+v: %v", again, err)
	}
	if !printed.Replayed || printed.Key != "github:octo/shop:16:deploy:production" || printed.Marker.ID != "m1" || printed.Warnings != nil {
		t.Errorf("%+v", printed)
	}
	const want = `{"version":"1.4.2","environment":"production","commit":"6dcb09b5b57875f334f61aebed695e2e4193db5e","url":"https://github.com/octo/shop/actions/runs/16"}`
	if len(f.bodies) != 1 || f.bodies[printed.Key] != want {
		t.Errorf("sent %v", f.bodies)
	}
	if other := f.run(t, ciStep{variables: github, command: deployMarkerCommand{Environment: "staging"}}); other.code != exitOK || !strings.HasPrefix(other.stdout, "marked ") || len(f.bodies) != 2 {
		t.Errorf("another environment: %+v", other)
	}
}

// TestDeployMarkerTime: a time is sent where the system offers one that stays
// the same, and nowhere else.
func TestDeployMarkerTime(t *testing.T) {
	t.Parallel()
	gitlab := map[string]string{"GITLAB_CI": "true", "CI_PROJECT_PATH": "a/b", "CI_PIPELINE_ID": "7", "CI_JOB_NAME": "deploy", "CI_PIPELINE_CREATED_AT": "2026-05-01T09:58:00Z"}
	for name, c := range map[string]struct {
		step ciStep
		want string
	}{
		"stable":        {ciStep{variables: gitlab}, `,"ts":"2026-05-01T09:58:00Z"`},
		"a manual job":  {ciStep{variables: gitlab, changes: map[string]string{"CI_JOB_MANUAL": "true"}}, ""},
		"none":          {ciStep{variables: gitlab, command: deployMarkerCommand{TS: "none"}}, ""},
		"a flag":        {ciStep{variables: gitlab, command: deployMarkerCommand{TS: "2026-05-01T12:00:00+02:00"}}, `,"ts":"2026-05-01T12:00:00+02:00"`},
		"none anywhere": {ciStep{variables: github, command: deployMarkerCommand{Commit: "none", RunURL: "none"}}, ""},
	} {
		f := &fakeMarkers{bodies: map[string]string{}}
		end := f.run(t, c.step)
		for _, body := range f.bodies {
			if want := `{"version":"1.4.2"` + c.want + `,"environment":"production"}`; end.code != exitOK || body != want {
				t.Errorf("%s: exit %d, sent %s, want %s: %s", name, end.code, body, want, end.stderr)
			}
		}
		if len(f.bodies) != 1 {
			t.Errorf("%s: %d markers", name, len(f.bodies))
		}
	}
}

// TestDeployMarkerWarns: a replay is a success; what is odd about the marker is
// said.
func TestDeployMarkerWarns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(map[string]any)
		after  time.Duration
		want   string
	}{
		"nothing odd":         {after: time.Hour},
		"another commit":      {change: func(m map[string]any) { m["commit"] = "aaaaaaa" }, want: "the marker is of commit aaaaaaa, and this deploy of 6dcb09b5b57875f334f61aebed695e2e4193db5e: the key constant-key is a constant"},
		"no commit":           {change: func(m map[string]any) { m["commit"] = nil }},
		"another version":     {change: func(m map[string]any) { m["version"] = "1.0" }, want: "the marker is of version 1.0, and this deploy of 1.4.2"},
		"another environment": {change: func(m map[string]any) { m["environment"] = "qa" }, want: "the marker is of environment qa"},
		"an old marker":       {after: 49 * time.Hour, want: "the marker was made 49 hours ago"},
		"deleted":             {change: func(m map[string]any) { m["deleted_at"] = "2026-05-01T10:30:00Z" }, want: "the marker was deleted at 2026-05-01T10:30:00Z"},
	} {
		f := &fakeMarkers{bodies: map[string]string{}, change: c.change}
		for range 2 {
			end := f.run(t, ciStep{variables: github, command: deployMarkerCommand{Key: "constant-key"}, after: c.after})
			replayed := strings.HasPrefix(end.stdout, "already marked")
			if warned := strings.Contains(end.stderr, "warning: "); end.code != exitOK || warned != (replayed && c.want != "") || (warned && !strings.Contains(end.stderr, c.want)) {
				t.Errorf("%s: exit %d, %q, want %q", name, end.code, end.stderr, c.want)
			}
		}
	}
}

// TestDeployMarkerConflict: a conflict is not repeated, and is explained by what
// differs.
func TestDeployMarkerConflict(t *testing.T) {
	t.Parallel()
	constant := deployMarkerCommand{Key: "constant-key"}
	for name, c := range map[string]struct {
		first, second ciStep
		want          string
	}{
		"a constant key": {
			ciStep{command: constant},
			ciStep{command: constant, changes: map[string]string{"GITHUB_RUN_ID": "17", "GITHUB_SHA": "a10867b14bb761a232cd80139fbd4c0d33264240"}},
			"commit and url are not the same now. Nothing was made. If this is another deploy, --key is a constant",
		},
		"numbers that start again": {
			ciStep{},
			ciStep{changes: map[string]string{"GITHUB_SHA": "a10867b14bb761a232cd80139fbd4c0d33264240"}},
			"commit is not the same now. Nothing was made. If one run deploys several things",
		},
		"a version from a date": {
			ciStep{command: deployMarkerCommand{Version: "1.0-100400"}},
			ciStep{command: deployMarkerCommand{Version: "1.0-100500"}},
			"version is not the same now. Nothing was made. If one run deploys several things to one environment, tell them apart by --name. If --version is made in the step",
		},
		"a time made anew": {
			ciStep{command: deployMarkerCommand{TS: "2026-05-01T10:00:00Z"}},
			ciStep{command: deployMarkerCommand{TS: "2026-05-01T10:00:01Z"}},
			"ts is not the same now. Nothing was made. --ts has changed between two attempts",
		},
		"a number of attempts": {
			ciStep{command: deployMarkerCommand{Metadata: map[string]string{"attempt": "1"}}},
			ciStep{command: deployMarkerCommand{Metadata: map[string]string{"attempt": "2"}}},
			"metadata is not the same now. Nothing was made. What another attempt changes",
		},
	} {
		f := &fakeMarkers{bodies: map[string]string{}}
		c.first.variables, c.second.variables = github, github
		if end := f.run(t, c.first); end.code != exitOK {
			t.Fatalf("%s: %+v", name, end)
		}
		end := f.run(t, c.second)
		if end.code != exitFailure || end.stdout != "" || !strings.Contains(end.stderr, "conflict: the key ") || !strings.Contains(end.stderr, c.want) || f.requests != 2 {
			t.Errorf("%s: exit %d after %d requests, %s", name, end.code, f.requests, end.stderr)
		}
	}
}

// TestDeployMarkerRefused: refusals are final, and what is not ends at some
// time.
func TestDeployMarkerRefused(t *testing.T) {
	t.Parallel()
	f := &fakeMarkers{script: []string{"none", "internal", "internal"}, bodies: map[string]string{}}
	if end := f.run(t, ciStep{variables: github}); end.code != exitFailure || f.requests != 1 {
		t.Errorf("refused: %+v", end)
	}
	for _, say := range []string{"stranger", "cut"} {
		other := &fakeMarkers{script: []string{say}, bodies: map[string]string{}}
		if end := other.run(t, ciStep{variables: github}); end.code != exitFailure || end.stdout != "" {
			t.Errorf("an answer that is no marker, %s: %+v", say, end)
		}
	}
	end := f.run(t, ciStep{variables: github, command: deployMarkerCommand{MaxAttempts: 2}})
	if end.code != exitGaveUp || f.requests != 3 || len(end.waits) != 1 || !strings.Contains(end.stderr, "run the same step again: the deploy is not marked twice") {
		t.Errorf("gave up: %+v", end)
	}
}

func TestDeployMarkerUsage(t *testing.T) {
	for _, name := range []string{"GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL", "JENKINS_HOME", "ACTIONPULSE_CI_TOKEN"} {
		t.Setenv(name, "")
	}
	t.Setenv("CI", "")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(" apc secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(whole, []byte(ciToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := []string{"--key", "deploy-77", "--project", ciProject, "--url", "http://127.0.0.1:1", "--max-attempts", "1"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no version":      {good, "--version"},
		"empty version":   {append([]string{"--version", " "}, good...), "is the variable that it comes from set?"},
		"no key":          {[]string{"--version", "1"}, "none of the CI/CD systems that are known. Give --key: a text that is the same on every attempt"},
		"short key":       {[]string{"--version", "1", "--key", "7chars7"}, "--key: "},
		"comma":           {[]string{"--version", "1", "--key", "deploy,77"}, "--key: "},
		"no project":      {[]string{"--version", "1", "--key", "deploy-77"}, "ACTIONPULSE_PROJECT_ID"},
		"no address":      {append([]string{"--version", "1", "--token-file", whole, "--url", "http://u:apc_secret@h"}, good[:4]...), "user"},
		"no token":        {append([]string{"--version", "1"}, good...), "ACTIONPULSE_CI_TOKEN"},
		"token in pieces": {append([]string{"--version", "1", "--token-file", file}, good...), "was it copied whole?"},
		"a time in words": {append([]string{"--version", "1", "--ts", "now"}, good...), "another attempt has to send the same"},
	} {
		code, stdout, stderr := invoke(t, append([]string{"deploy-marker"}, c.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(strings.ReplaceAll(stderr, " ", "_"), ciToken) {
			t.Errorf("%s: exit %d, %q, %q", name, code, stdout, stderr)
		}
	}
}

// TestDeployMarkerDryRun: it needs no token and no server, and says where
// everything comes from.
func TestDeployMarkerDryRun(t *testing.T) {
	t.Parallel()
	f := &fakeMarkers{bodies: map[string]string{}}
	end := f.run(t, ciStep{variables: github, command: deployMarkerCommand{DryRun: true, Name: "web"}})
	for _, want := range []string{
		"github:octo/shop:16:web:production", "(GITHUB_REPOSITORY, GITHUB_RUN_ID, --name, environment)", "(GITHUB_SHA)", "the server notes when",
		`{"version":"1.4.2","environment":"production","commit":`,
	} {
		if !strings.Contains(end.stdout, want) {
			t.Errorf("no %q in %s", want, end.stdout)
		}
	}
	if end.code != exitOK || f.requests != 0 {
		t.Errorf("exit %d, %d requests", end.code, f.requests)
	}
}
