package main

import (
	"bytes"
	"encoding/json"

	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
	labreport "github.com/actionpulse/actionpulse/internal/lab/report"
)

// TestLabServer: our own server keeps every promise that the lab tries, but
// those about restarts, which it is not given.
func TestLabServer(t *testing.T) {
	t.Parallel()
	s := apptest.New(t).MustServe()
	command := labServerCommand{
		API: "actionpulse", URL: s.URL + "/", AtOnce: 20, Timeout: 30 * time.Second, Seed: 7, Report: "json",
		labCredentials: labCredentials{
			Key: s.Setup.ServerKey, ProjectKey: s.Setup.ProjectKey, CIToken: s.Setup.CIToken,
			Project: s.Setup.Project.ID, AccessToken: s.Setup.AccessToken,
		},
	}
	var stdout, stderr bytes.Buffer
	err := command.Run(t.Context(), streams{strings.NewReader(""), &stdout, &stderr})
	if err != nil {
		t.Error(err)
	}
	var report labreport.Report
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s", err, stdout.Bytes())
	}
	if len(report.Checks) != 4*16+6 {
		t.Errorf("%d checks", len(report.Checks))
	}
	for _, c := range report.Checks {
		want := labreport.Pass
		if strings.Contains(c.ID, "restart") {
			want = labreport.NotTested
		}
		if c.Verdict != want {
			t.Errorf("%s: %s\n%s", c.ID, c.Verdict, strings.Join(c.Evidence, "\n"))
		}
	}
	for _, secret := range []string{s.Setup.ServerKey, s.Setup.ProjectKey, s.Setup.CIToken, s.Setup.AccessToken} {
		if strings.Contains(stdout.String(), secret) {
			t.Error("a credential is in the report")
		}
	}
}

// TestLabServerUsage: what cannot be tried is refused before anything is sent.
func TestLabServerUsage(t *testing.T) {
	t.Parallel()
	good := labServerCommand{API: "generic", URL: "http://127.0.0.1:1/", AtOnce: 2, Timeout: 30 * time.Second}
	for want, change := range map[string]func(*labServerCommand){
		"http://":              func(c *labServerCommand) { c.URL = "ftp://127.0.0.1" },
		"not both":             func(c *labServerCommand) { c.Serve, c.Restart = "a", "b" },
		"2 to 1000":            func(c *labServerCommand) { c.AtOnce = 1 },
		"more than 0":          func(c *labServerCommand) { c.Timeout = 0 },
		"ACTIONPULSE_CI_TOKEN": func(c *labServerCommand) { c.API, c.Key, c.ProjectKey = "actionpulse", "aps_1", "apk_1" },
		"'Name: value'":        func(c *labServerCommand) { c.Header = []string{"nothing"} },
		"\"id\" is no JSON":    func(c *labServerCommand) { c.ID = "id" },
		"first request got no": func(*labServerCommand) {},
	} {
		c := good
		change(&c)
		err := c.Run(t.Context(), streams{strings.NewReader(""), new(bytes.Buffer), new(bytes.Buffer)})
		code := exitUsage
		if want == "first request got no" {
			code = exitFailure
		}
		if err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != code {
			t.Errorf("%s: got %v, code %d", want, err, exitCode(err))
		}
	}
}
