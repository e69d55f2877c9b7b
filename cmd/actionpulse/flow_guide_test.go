package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/flow"
)

// blocks are the texts of a kind that a guide shows.
func blocks(t *testing.T, name, kind string) (guide string, found []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?s)\n```"+kind+"\n(.*?)```\n").FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	return string(text), found
}

// TestTheGuideCompiles: every definition that the guide shows is one, and it
// shows every type of step.
func TestTheGuideCompiles(t *testing.T) {
	t.Parallel()
	guide, definitions := blocks(t, "flows.md", "yaml")
	for _, definition := range definitions {
		issues, err := issuesOf("guide.yaml", []byte(definition))
		if err != nil || len(issues) > 0 {
			t.Errorf("%v\n%s\n%s", err, strings.Join(issues, "\n"), definition)
		}
	}
	all := strings.Join(definitions, "\n")
	for _, step := range app.FlowTypes() {
		if !strings.Contains(all, "type: "+step.Name()) {
			t.Errorf("no example has a step of type %s", step.Name())
		}
	}
	if len(definitions) < 5 {
		t.Errorf("only %d definitions", len(definitions))
	}
	issues, err := issuesOf("guide.yaml", []byte(strings.Replace(definitions[0], "messages:", "mesages:", 1)))
	if want := "steps[0].mesages: unknown member"; err != nil || !slices.Contains(issues, want) || !strings.Contains(guide, want) {
		t.Errorf("the refusal that the guide shows is another: %v, %v", issues, err)
	}
}

// TestTheOtherGuidesCompile: so is every definition in the guides about what
// flows do.
func TestTheOtherGuidesCompile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"executions-and-traces.md", "models.md"} {
		_, definitions := blocks(t, name, "yaml")
		if len(definitions) == 0 {
			t.Errorf("%s shows none", name)
		}
		for _, definition := range definitions {
			if issues, err := issuesOf(name, []byte(definition)); err != nil || len(issues) > 0 {
				t.Errorf("%s: %v\n%s\n%s", name, err, strings.Join(issues, "\n"), definition)
			}
		}
	}
}

// TestTheGuidePrices: the price of the guide's example is what its text says.
func TestTheGuidePrices(t *testing.T) {
	t.Parallel()
	_, definitions := blocks(t, "flows.md", "yaml")
	i := slices.IndexFunc(definitions, func(d string) bool { return strings.Contains(d, "per_step:") })
	if i < 0 {
		t.Fatal("no example with a price")
	}
	_, program, err := flow.CompileSource(app.FlowTypes(), []byte(definitions[i]), flow.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(program.Hold()); got != "12.1" {
		t.Errorf("the hold is %s", got)
	}
}
