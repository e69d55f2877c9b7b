package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
	labreport "github.com/actionpulse/actionpulse/internal/lab/report"
	"github.com/actionpulse/actionpulse/retry"
)

// TestDeployMarkerInTheLab: run as CI systems run it, again and for the next
// deploy, with lost answers between, deploy-marker keeps the rules of keys.
func TestDeployMarkerInTheLab(t *testing.T) {
	t.Parallel()
	for _, ci := range []string{"github", "gitlab"} {
		t.Run(ci, func(t *testing.T) {
			t.Parallel()
			result, err := judgeclient.Run(t.Context(), judgeclient.Params{
				Profile: judgeclient.Deploy, API: judgeclient.ActionPulse, Name: "deploy-marker", CI: ci, Scale: 0.02, Folder: t.TempDir(),
				Scenarios: []string{"accepted", "deploy-rerun", "deploy-next", "unavailable", "no-answer", "refused-409"}, Subject: markInLab,
			})
			if err != nil {
				t.Fatal(err)
			}
			seen := []string{
				"key-well-formed", "key-stable-across-attempts", "key-stable-after-restart", "key-differs-per-unit", "ts-stable", "body-stable",
				"503-perhaps-applied", "replay-is-success", "not-repeated-409",
			}
			for _, c := range result.Checks {
				if slices.Contains(seen, c.ID) != (c.Verdict == labreport.Pass) && c.ID != "retry-after-obeyed" {
					t.Errorf("%s: %s %q", c.ID, c.Verdict, c.Evidence)
				}
			}
		})
	}
}

// markInLab is the command as the lab runs it.
func markInLab(ctx context.Context, env []string) judgeclient.Exit {
	lookup := func(name string) (string, bool) {
		for _, line := range env {
			if value, ok := strings.CutPrefix(line, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	url, _ := lookup("ACTIONPULSE_URL")
	project, _ := lookup("ACTIONPULSE_PROJECT_ID")
	var out bytes.Buffer
	c := deployMarkerCommand{Version: "1.4.2", URL: url, Project: project, MaxAttempts: 10}
	err := c.run(ctx, deployIO{
		streams: streams{strings.NewReader(""), &out, &out}, lookup: lookup, now: time.Now,
		policy: retry.Policy{MaxAttempts: 6, Delays: retry.Delays{First: 20 * time.Millisecond}},
	})
	return judgeclient.Exit{Known: true, Code: exitCode(err), Output: out.String()}
}
