package idempotency_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestTheGuideShowsTheExamples: the code of the guide is code that is compiled
// and run.
func TestTheGuideShowsTheExamples(t *testing.T) {
	guide, err := os.ReadFile("../docs/guides/own-service.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("example*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		examples.Write(content)
	}
	blocks := goBlock.FindAllStringSubmatch(string(guide), -1)
	if len(blocks) < 5 {
		t.Fatalf("found %d blocks of code", len(blocks))
	}
	for _, block := range blocks {
		if !strings.HasPrefix(block[1], "import ") && !strings.Contains(examples.String(), block[1]) {
			t.Errorf("no example has:\n%s", block[1])
		}
	}
}
