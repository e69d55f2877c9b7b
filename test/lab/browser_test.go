//go:build browsersdk

package lab_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
	"github.com/actionpulse/actionpulse/internal/lab/report"
)

// TestBrowserSDK: the browser client, with Node in place of the page, breaks no
// rule. Its delays are real seconds and its machine is busy, so those are judged
// by its own tests; this needs node and sdk/browser/dist.
func TestBrowserSDK(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../sdk/browser/dist/index.js"); err != nil {
		t.Fatalf("npm run build in sdk/browser comes first: %v", err)
	}
	result, err := judgeclient.Run(t.Context(), judgeclient.Params{
		Profile: judgeclient.Events, API: judgeclient.ActionPulse, Name: "the browser client", Seed: 1, Parallel: 8, Folder: t.TempDir(),
		Subject: judgeclient.Command([]string{"node", "browser.mjs"}, nil),
		Scenarios: []string{
			"accepted", "unavailable", "no-answer", "retryable-conflict", "kill", "rejected",
			"refused-400", "refused-401", "refused-402", "refused-403", "refused-409", "refused-413", "refused-422", "refused-quota",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range result.Checks {
		if c.Verdict == report.Fail && !slices.Contains(timed, c.ID) {
			t.Errorf("%s: %q", c.ID, c.Evidence)
		}
	}
	want(t, result, func(id string) bool {
		kept := []string{"id-canonical-uuid", "id-at-the-fact", "id-stable-after-restart", "ts-stable", "rejected-not-resent", "buffer-kept-after-kill"}
		return slices.Contains(kept, id) || strings.HasPrefix(id, "not-repeated-4") && id != "not-repeated-404" && id != "not-repeated-415"
	})
}
