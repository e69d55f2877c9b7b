package lint

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lineLimits are the documents that are read in one sitting.
var lineLimits = map[string]int{
	"ARCHITECTURE.md": 200,
	"docs/adr/*.md":   60,
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestDocumentsAreShort(t *testing.T) {
	t.Parallel()
	eachDocument(t, func(name, content string) {
		for pattern, most := range lineLimits {
			matched, err := path.Match(pattern, name)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(content, "\n"); matched && n > most {
				t.Errorf("%s has %d lines, more than %d", name, n, most)
			}
		}
	})
}

// TestLinksLeadSomewhere checks the links between documents and to files.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	eachDocument(t, func(name, content string) {
		for _, match := range link.FindAllStringSubmatch(content, -1) {
			target, err := url.Parse(match[1])
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if target.Scheme != "" || target.Path == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, path.Dir(name), target.Path)); err != nil {
				t.Errorf("%s links to %s: %v", name, match[1], err)
			}
		}
	})
}

func eachDocument(t *testing.T, fn func(name, content string)) {
	t.Helper()
	documents := 0
	err := walk(func(name string, content []byte) error {
		if path.Ext(name) == ".md" {
			documents++
			fn(name, string(content))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if documents == 0 {
		t.Error("no documents found")
	}
}
