package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestOrganization: the operator's commands, with a server that runs and
// without one.
func TestOrganization(t *testing.T) {
	dir, made := initialise(t)
	command := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := invoke(t, append([]string{"organization"}, args...)...)
		if code != want {
			t.Fatalf("%v: exit %d, %s%s", args, code, stdout, stderr)
		}
		return stdout, stderr
	}
	stdout, _ := command(exitOK, "list", "--data", dir, "--json")
	var all []struct {
		ID          string
		SuspendedAt *string `json:"suspended_at"`
	}
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all) != 1 || all[0].ID == "" || all[0].SuspendedAt != nil {
		t.Fatalf("%s, %v", stdout, err)
	}
	id := all[0].ID
	command(exitOK, "suspend", "--data", dir, id)

	url, stop := serving(t, dir)
	status := func() int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/track", strings.NewReader(`{"events":[{"event":"a","user_id":"u"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+made.ServerKey)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // nothing of it is read
		return answer.StatusCode
	}
	for _, c := range []struct {
		command string
		state   string
		status  int
	}{{"", "suspended", 402}, {"resume", "active", 202}, {"suspend", "suspended", 402}, {"suspend", "suspended", 402}, {"resume", "active", 202}} {
		if c.command != "" {
			command(exitOK, c.command, "--data", dir, id)
		}
		if got := status(); got != c.status {
			t.Errorf("after %q: %d, want %d", c.command, got, c.status)
		}
		if stdout, _ := command(exitOK, "list", "--data", dir); !strings.HasPrefix(stdout, id+"  "+c.state+"  ") {
			t.Errorf("after %q: %s", c.command, stdout)
		}
	}
	for _, bad := range []string{"x", "01980000-0000-7000-8000-0000000000ff"} {
		if _, stderr := command(exitFailure, "suspend", "--data", dir, bad); !strings.Contains(stderr, "no such organization") {
			t.Error(stderr)
		}
	}
	command(exitUsage, "suspend", "--data", dir)
	if code := stop(); code != exitOK {
		t.Errorf("stopped with %d", code)
	}
	if _, stderr := command(exitFailure, "resume", "--data", dir, "x"); !strings.Contains(stderr, "no such organization") {
		t.Error(stderr)
	}
	command(exitRefused, "list", "--data", t.TempDir())
}
