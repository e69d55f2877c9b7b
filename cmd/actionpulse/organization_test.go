package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// organizationCommands runs the operator's commands, which must end as wanted.
func organizationCommands(t *testing.T) func(want int, args ...string) (stdout, stderr string) {
	return func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := invoke(t, append([]string{"organization"}, args...)...)
		if code != want {
			t.Fatalf("%v: exit %d, %s%s", args, code, stdout, stderr)
		}
		return stdout, stderr
	}
}

// TestOrganization: the operator's commands, with a server that runs and
// without one.
func TestOrganization(t *testing.T) {
	dir, made := initialise(t)
	command := organizationCommands(t)
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

// TestOrganizationPlan: a plan of the settings is given and taken, with a server
// that runs and without one. A name that the settings do not have is refused.
func TestOrganizationPlan(t *testing.T) {
	dir, _ := initialise(t)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"plans": {"free": {"events": 5}, "paid": {}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	command := organizationCommands(t)
	listed := func() (id, plan string) {
		t.Helper()
		stdout, _ := command(exitOK, "list", "--data", dir)
		fields := strings.Fields(stdout)
		if len(fields) < 4 {
			t.Fatal(stdout)
		}
		return fields[0], fields[2]
	}
	id, plan := listed()
	if plan != "-" {
		t.Errorf("at first: %s", plan)
	}
	changes := func(how string) {
		for _, plan := range []string{"free", "free", "paid"} {
			command(exitOK, "plan", "--data", dir, id, plan)
			if _, got := listed(); got != plan {
				t.Errorf("%s: the plan is %s, not %s", how, got, plan)
			}
		}
		if _, stderr := command(exitFailure, "plan", "--data", dir, id, "fre"); !strings.Contains(stderr, `no plan "fre"; they have ["free" "paid"]`) {
			t.Errorf("%s: %s", how, stderr)
		}
		if _, got := listed(); got != "paid" {
			t.Errorf("%s: a refused plan left %s", how, got)
		}
		command(exitOK, "plan", "--data", dir, id)
		if _, got := listed(); got != "-" {
			t.Errorf("%s: the default is %s", how, got)
		}
	}
	changes("a folder")
	_, stop := serving(t, dir)
	changes("a server")
	if code := stop(); code != exitOK {
		t.Errorf("stopped with %d", code)
	}
	command(exitUsage, "plan", "--data", dir, "--default_plan", "none", id)
}
