package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.yaml.in/yaml/v3"
)

// actAsBinary has the test binary be actionpulse, for scripts that call it.
const actAsBinary = "ACTIONPULSE_TEST_IS_THE_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv(actAsBinary) != "" {
		main()
	}
	os.Exit(m.Run())
}

// pipeline runs steps of a CI/CD system against a real server.
type pipeline struct {
	t   *testing.T
	url string
	// made is what init said of the server.
	made initResult
	// binary is a script that is actionpulse.
	binary string
	// lose makes the proxy in front of the server cut the connection after the
	// next request was answered, as often as this says.
	lose atomic.Int64
}

func newPipeline(t *testing.T) *pipeline {
	t.Helper()
	dir, made := initialise(t)
	server, stop := serving(t, dir)
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p := &pipeline{t: t, made: made, binary: filepath.Join(t.TempDir(), "actionpulse")}
	forward := httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.lose.Add(-1) >= 0 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	p.url = proxy.URL
	t.Cleanup(func() {
		proxy.Close()
		stop()
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n" + actAsBinary + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(p.binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs a script as a runner would: only the given variables are set.
func (p *pipeline) run(shell []string, script string, variables map[string]string) (stdout string, err error) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), shell[0], append(shell[1:], "-c", script)...)
	command.Dir = p.t.TempDir()
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + command.Dir}
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if strings.Contains(string(out)+stderr.String(), p.made.CIToken) {
		p.t.Errorf("the token is shown: %s%s", out, &stderr)
	}
	if err != nil {
		p.t.Logf("%s", &stderr)
	}
	return string(out), err
}

// markers are the markers that there are of some environments.
func (p *pipeline) markers(environments ...string) map[string][]string {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/api/v1/projects/"+p.made.ProjectID+"/release-markers", http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.made.AccessToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = response.Body.Close()
	var list struct {
		Items []struct{ Version, Environment, Commit, URL, Title, TS string }
	}
	if err := json.Unmarshal(content, &list); err != nil {
		p.t.Fatalf("%s: %v", content, err)
	}
	out := map[string][]string{}
	for _, m := range list.Items {
		if !slices.Contains(environments, m.Environment) {
			continue
		}
		if m.Version == "" || len(m.Commit) != 40 || m.URL == "" {
			p.t.Errorf("a marker is %+v", m)
		}
		out[m.Environment] = append(out[m.Environment], m.Version+" "+m.Title)
	}
	return out
}

// exampleFile decodes an example; what it does not name is not read.
func exampleFile[T any](t *testing.T, name string) (out T) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../examples/ci", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// action is a composite action of GitHub.
type action struct {
	Inputs map[string]struct {
		Required bool
		Default  string
	}
	Runs struct {
		Steps []struct {
			Shell, Run string
			Env        map[string]string
		}
	}
}

var actionInput = regexp.MustCompile(`^\$\{\{ inputs\.([a-z-]+) \}\}$`)

// variables are those of the action's one step.
func (a *action) variables(t *testing.T, with map[string]string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, expression := range a.Runs.Steps[0].Env {
		match := actionInput.FindStringSubmatch(expression)
		if match == nil {
			t.Fatalf("%s is %s", name, expression)
		}
		input, known := a.Inputs[match[1]]
		value, given := with[match[1]]
		if !known || (input.Required && !given) {
			t.Fatalf("%s needs the input %s", name, match[1])
		}
		if !given {
			value = input.Default
		}
		out[name] = value
	}
	return out
}

// TestExamplesForCI: the examples' own scripts, run by a shell as on a runner,
// make one marker of each deploy, with the binary and with curl, through a lost
// answer and a re-run.
func TestExamplesForCI(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	token := p.made.CIToken
	for name, test := range map[string]func(*testing.T, *pipeline){"GitHub": testGitHubAction, "GitLab": testGitLabJobs} {
		t.Run(name, func(t *testing.T) {
			p.t, p.made.CIToken = t, token
			test(t, p)
		})
	}
}

func testGitHubAction(t *testing.T, p *pipeline) {
	t.Helper()
	a := exampleFile[action](t, "github-action/action.yml")
	folder, err := filepath.Abs("../../examples/ci/github-action")
	if err != nil || len(a.Runs.Steps) != 1 || a.Runs.Steps[0].Shell != "bash" {
		t.Fatalf("%v, %+v", err, a.Runs)
	}
	const awkward = `say "1.4\2" $(exit 7)`
	attempt := func(binary, environment, number string) error {
		t.Helper()
		output := filepath.Join(t.TempDir(), "output")
		variables := maps.Clone(github)
		maps.Copy(variables, a.variables(t, map[string]string{
			"server": p.url, "project-id": p.made.ProjectID, "token": p.made.CIToken, "version": "1.4.2", "environment": environment, "title": awkward, "actionpulse": binary,
		}))
		maps.Copy(variables, map[string]string{"GITHUB_RUN_ATTEMPT": number, "GITHUB_ACTION_PATH": folder, "GITHUB_OUTPUT": output})
		stdout, err := p.run([]string{"bash", "--noprofile", "--norc", "-e", "-o", "pipefail"}, a.Runs.Steps[0].Run, variables)
		said, errOutput := os.ReadFile(output)
		if err == nil && (errOutput != nil || !strings.Contains(stdout, `1.4.2`) || !strings.HasPrefix(string(said), "marker<<end-16-") || !strings.Contains(string(said), "{")) {
			t.Errorf("attempt %s with %q: %v\n%s%s", number, binary, errOutput, stdout, said)
		}
		return err
	}
	p.lose.Store(1)
	for _, a := range []struct{ binary, environment, number string }{
		{"", "production", "1"}, {"", "production", "2"}, {p.binary, "production", "3"}, {p.binary, "staging", "1"}, {"", "staging", "2"},
	} {
		if err := attempt(a.binary, a.environment, a.number); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
	want := map[string][]string{"production": {"1.4.2 " + awkward}, "staging": {"1.4.2 " + awkward}}
	if got := p.markers("production", "staging"); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("markers %q, want %q", got, want)
	}
	p.made.CIToken = "apc_wrong"
	for _, binary := range []string{"", p.binary} {
		if attempt(binary, "production", "4") == nil {
			t.Errorf("with %q a refusal is a success", binary)
		}
	}
}

func testGitLabJobs(t *testing.T, p *pipeline) {
	t.Helper()
	jobs := exampleFile[map[string]struct {
		Script    []string
		Variables map[string]string
	}](t, "gitlab/deploy-marker.gitlab-ci.yml")
	attempt := func(job, jobID, environment string) error {
		t.Helper()
		variables := map[string]string{
			"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/shop", "CI_PIPELINE_ID": "123456", "CI_JOB_ID": jobID, "CI_JOB_NAME": "mark:" + environment, "CI_JOB_NAME_SLUG": "mark-" + environment,
			"CI_JOB_STARTED_AT": "2026-05-01T10:0" + jobID + ":00Z", "CI_PIPELINE_CREATED_AT": "2026-05-01T10:00:00Z", "CI_COMMIT_SHA": github["GITHUB_SHA"],
			"CI_ENVIRONMENT_NAME": environment, "CI_ENVIRONMENT_SLUG": environment, "CI_PIPELINE_URL": "https://gitlab.example.com/acme/shop/-/pipelines/123456", "VERSION": "1.4.2",
			"ACTIONPULSE_URL": p.url, "ACTIONPULSE_PROJECT_ID": p.made.ProjectID, "ACTIONPULSE_CI_TOKEN": p.made.CIToken,
		}
		maps.Copy(variables, jobs[job].Variables)
		if variables["ACTIONPULSE"] == "actionpulse" {
			variables["ACTIONPULSE"] = p.binary
		}
		if len(jobs[job].Script) == 0 {
			t.Fatalf("no script in %s", job)
		}
		_, err := p.run([]string{"bash", "-e", "-o", "pipefail"}, strings.Join(jobs[job].Script, "\n"), variables)
		return err
	}
	for job, environment := range map[string]string{".actionpulse-deploy-marker": "eu", ".actionpulse-deploy-marker-curl": "us"} {
		for _, id := range []string{"1", "2"} {
			if err := attempt(job, id, environment); err != nil {
				t.Errorf("%s, attempt %s: %v", job, id, err)
			}
		}
	}
	want := map[string][]string{"eu": {"1.4.2 "}, "us": {"1.4.2 "}}
	if got := p.markers("eu", "us"); !maps.EqualFunc(got, want, slices.Equal) || len(jobs) != 2 {
		t.Errorf("%d jobs, markers %q, want %q", len(jobs), got, want)
	}
	p.made.CIToken = "apc_wrong"
	for job := range jobs {
		if err := attempt(job, "3", "production"); err == nil {
			t.Errorf("%s is a success although it was refused", job)
		}
	}
}
