package judgeclient_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
)

// row is how the guide shows a check.
func row(c judgeclient.Check) string {
	profiles := make([]string, 0, len(c.Profiles))
	for _, p := range c.Profiles {
		profiles = append(profiles, string(p))
	}
	return fmt.Sprintf("| `%s` | %s. *%s* | %s | %s |", c.ID, c.Title, c.Source, c.How, strings.Join(profiles, ", "))
}

// TestGuideListsTheChecks: the guide has a row for each check, as it is judged.
func TestGuideListsTheChecks(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range judgeclient.Checks() {
		if seen[c.ID] {
			t.Errorf("two checks are called %s", c.ID)
		}
		seen[c.ID] = true
		if !strings.Contains(string(guide), row(c)+"\n") {
			t.Errorf("docs/guides/lab.md lacks the row\n%s", row(c))
		}
	}
	for _, s := range judgeclient.Scenarios() {
		if !strings.Contains(string(guide), "`"+s.Name+"`") && !strings.HasPrefix(s.Name, "refused-") {
			t.Errorf("docs/guides/lab.md does not speak of the scenario %s", s.Name)
		}
	}
}
