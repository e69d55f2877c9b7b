package cienv

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTheGuideNamesTheVariables: the guide's table has a line for each system,
// with the variables that its key, time and environment come from, and no
// others.
func TestTheGuideNamesTheVariables(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/ci-cd.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	for line := range strings.Lines(string(guide)) {
		if cells := strings.Split(line, " | "); len(cells) == 5 {
			lines[strings.TrimPrefix(cells[0], "| ")] = cells[1:4]
		}
	}
	for _, s := range systems {
		cells, found := lines[s.name]
		if !found {
			t.Errorf("no line for %s", s.name)
			continue
		}
		for i, want := range [][]string{slices.Concat(slices.Concat(s.run, s.step)...), {s.ts}, s.environment} {
			if got := variablesIn(cells[i]); !slices.Equal(got, slices.DeleteFunc(want, func(name string) bool { return name == "" || name == "SYSTEM_JOBNAME" })) {
				t.Errorf("%s: the guide names %q, want %q", s.name, got, want)
			}
		}
	}
}

// variablesIn are the names between backquotes.
func variablesIn(cell string) (names []string) {
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}
