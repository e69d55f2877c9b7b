package judgeserver

import (
	"os"
	"strings"
	"testing"
)

// TestGuide: the guide names every check; its rule stands beside it, but for the
// three about keys, which share a line.
func TestGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, c := range trials() {
		rules[c.id] = c.title
	}
	for _, c := range intakeTrials() {
		rules[c.id] = c.title
	}
	for id, title := range rules {
		row := "| `" + id + "` | " + title + " |"
		if strings.HasPrefix(id, "key-") {
			row = "`" + id + "`"
		}
		if !strings.Contains(string(guide), row) {
			t.Errorf("docs/guides/lab.md lacks the row %s", row)
		}
	}
}
