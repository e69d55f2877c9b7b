package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// invoke runs a command line to its end.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, streams{strings.NewReader(""), &out, &errs})
	return code, out.String(), errs.String()
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"nonsense"},
		{"serve", "--nonsense"},
		{"serve", "extra"},
		{"serve", "--intake.window=2 days"},
		{"serve", "--intake.window=1ms"},
		{"config", "--log.level=loud"},
		{"serve", "--config=/nonexistent.json"},
		{"init", "--database=mysql://u:hunter2@h/d"},
		{"init", "--join", "--database=postgres://u:hunter2@h/d"},
	} {
		code, stdout, stderr := invoke(t, args...)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "actionpulse: ") {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
		if strings.Contains(stderr, "hunter2") {
			t.Errorf("%v: the message holds a password: %s", args, stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"init", "--help"}, {"config", "--help"}} {
		code, stdout, stderr := invoke(t, args...)
		if code != exitOK || !strings.HasPrefix(stdout, "Usage: actionpulse") || stderr != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := invoke(t, "serve", "--help"); !strings.Contains(stdout, "ACTIONPULSE_INTAKE_WINDOW") {
		t.Error("help does not name the environment variables")
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := invoke(t, "version")
	if code != exitOK || !strings.HasPrefix(stdout, "actionpulse ") {
		t.Errorf("exit %d, %q", code, stdout)
	}
	var v buildVersion
	code, stdout, _ = invoke(t, "version", "--json")
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != exitOK || v.Version == "" || v.Go == "" {
		t.Errorf("exit %d, %q: %v", code, stdout, err)
	}
}

func TestConfigPrintsValuesAndSources(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"query": {"time_budget": "3s"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ACTIONPULSE_DATABASE", "postgres://u:hunter2@h/d")
	code, stdout, stderr := invoke(t, "config", "--data", dir, "--rate.burst=5")
	var settings map[string]struct {
		Value  any
		Source string
		From   string
	}
	if err := json.Unmarshal([]byte(stdout), &settings); err != nil || code != exitOK {
		t.Fatalf("exit %d, %q, %q: %v", code, stdout, stderr, err)
	}
	for name, want := range map[string][3]any{
		"query.time_budget": {"3s", "file", filepath.Join(dir, "config.json")},
		"database":          {"postgres://u:xxxxx@h/d", "environment", "ACTIONPULSE_DATABASE"},
		"rate.burst":        {5.0, "flag", ""},
		"intake.window":     {"48h0m0s", "default", ""},
	} {
		if got := settings[name]; got.Value != want[0] || got.Source != want[1] || got.From != want[2] {
			t.Errorf("%s: %+v, want %v", name, got, want)
		}
	}
	if strings.Contains(stdout, "hunter2") {
		t.Error("the password is printed")
	}
}

// initialise makes a data folder and returns what init printed.
func initialise(t *testing.T) (dir string, made initResult) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	code, stdout, stderr := invoke(t, "init", "--data", dir, "--json")
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&made); err != nil || code != exitOK {
		t.Fatalf("exit %d, %q, %q: %v", code, stdout, stderr, err)
	}
	return dir, made
}

func TestInit(t *testing.T) {
	dir, made := initialise(t)
	encoded, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(encoded, &members); err != nil {
		t.Fatal(err)
	}
	want := []string{"access_token", "browser_token", "ci_token", "legacy_key", "organization_id", "owner", "project_id", "project_key", "server_key"}
	var names []string
	for name, value := range members {
		names = append(names, name)
		if value == "" {
			t.Errorf("%s is empty", name)
		}
	}
	slices.Sort(names)
	if !reflect.DeepEqual(names, want) {
		t.Errorf("members %v, want %v", names, want)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode is %v, %v", info.Mode(), err)
	}
	code, stdout, stderr := invoke(t, "init", "--data", dir)
	if code != exitRefused || stdout != "" || !strings.Contains(stderr, "the data folder is refused") {
		t.Errorf("again: exit %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, _ = invoke(t, "init", "--data", filepath.Join(t.TempDir(), "other"))
	if code != exitOK || !strings.Contains(stdout, "aps_") || !strings.Contains(stdout, "shown only once") {
		t.Errorf("for people: exit %d, %q", code, stdout)
	}
}

// serving runs serve until stop is called, which returns its exit code.
func serving(t *testing.T, dir string) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var log bytes.Buffer
	var code int
	var done sync.WaitGroup
	done.Go(func() {
		code = run(ctx, []string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--storage.min_free_bytes=0", "--storage.min_free_percent=0"},
			streams{strings.NewReader(""), writer, &log})
		_ = writer.Close()
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		cancel()
		done.Wait()
		t.Fatalf("serve ended with %d before it listened: %s", code, log.String())
	}
	url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !found {
		t.Errorf("serve printed %q", line)
	}
	return url, func() int {
		cancel()
		done.Wait()
		http.DefaultClient.CloseIdleConnections()
		return code
	}
}

func TestServe(t *testing.T) {
	dir, made := initialise(t)
	url, stop := serving(t, dir)
	post := func(path, secret, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode, string(text)
	}
	batch := `{"events":[{"event_id":"8b0d3f2e-0000-4000-8000-000000000001","event":"a","user_id":"u"}]}`
	for _, want := range []string{`{"accepted":1,"duplicates":0,"rejected":[]}`, `{"accepted":1,"duplicates":1,"rejected":[]}`} {
		if status, text := post("/v1/track", made.ServerKey, batch); status != 202 || strings.TrimSpace(text) != want {
			t.Errorf("%d %s, want %s", status, text, want)
		}
	}
	if status, text := post("/v1/alias", made.BrowserToken, `{"anon_id":"a","user_id":"u"}`); status != 403 {
		t.Errorf("alias with a browser token: %d %s", status, text)
	}
	if code, _, stderr := invoke(t, "serve", "--data", dir, "--listen", "127.0.0.1:0"); code != exitRefused || stderr == "" {
		t.Errorf("a second server on the folder: exit %d, %s", code, stderr)
	}
	if code := stop(); code != exitOK {
		t.Errorf("stopped with %d", code)
	}
	url, stop = serving(t, dir)
	if status, text := post("/v1/track", made.LegacyKey, batch); status != 202 || !strings.Contains(text, `"duplicates":0`) {
		t.Errorf("by another kind of key, after a restart: %d %s", status, text)
	}
	if status, text := post("/v1/track", made.ServerKey, batch); status != 202 || !strings.Contains(text, `"duplicates":1`) {
		t.Errorf("after a restart: %d %s", status, text)
	}
	if code := stop(); code != exitOK {
		t.Errorf("stopped with %d", code)
	}
	if code, stdout, stderr := invoke(t, "verify", "--data", dir); code != exitOK {
		t.Errorf("verify: exit %d, %s, %s", code, stdout, stderr)
	}
}

func TestServeWithoutAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	code, _, stderr := invoke(t, "serve", "--data", dir)
	if code != exitRefused || !strings.Contains(stderr, "actionpulse init") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("serve made the folder")
	}
}
