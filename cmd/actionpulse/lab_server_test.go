package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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

// TestLabServerCommandLine: a shop that does every request anew is found out,
// with the flags as they are in the guide.
func TestLabServerCommandLine(t *testing.T) {
	t.Parallel()
	var orders atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Shop") != "a, b" || !strings.HasPrefix(r.URL.Path, "/orders/lab-") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		fmt.Fprintf(w, `{"order":{"id":%d}}`, orders.Add(1)) //nolint:errcheck // the lab sees it
	}))
	defer shop.Close()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{
		"lab", "server", "--url", shop.URL + "/orders/{{unit}}", "-H", "X-Shop: a, b", "--body", `{"amount": 5}`, "--id", "/order/id", "--at-once", "4",
	}, streams{strings.NewReader(""), &stdout, &stderr})
	if code != exitBroken || !strings.Contains(stdout.String(), "FAIL          repeat-same-object") || stderr.Len() > 0 {
		t.Errorf("code %d: %s%s", code, stdout.String(), stderr.String())
	}
}
