// Command thirdparty runs analytics clients of others through `actionpulse lab
// client` and writes what was seen as a document: a table of verdicts, the
// evidence of what was broken or in doubt, and notes.md.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// client is one of the clients under test.
type client struct {
	name, api string
	command   []string
	version   string
}

// report is the part of the lab's JSON that is shown.
type report struct {
	Checks []check        `json:"checks"`
	Counts map[string]int `json:"counts"`
}

type check struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Verdict  string   `json:"verdict"`
	Evidence []string `json:"evidence"`
}

func main() {
	lab := flag.String("lab", "actionpulse", "the binary with the lab")
	bin := flag.String("bin", "bin", "folder with the Go clients, built")
	out := flag.String("out", "../../../docs/lab-report.md", "the document to write")
	flag.Parse()
	if err := run(*lab, *bin, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(lab, bin, out string) error {
	clients, err := clients(bin)
	if err != nil {
		return err
	}
	reports := make([]report, len(clients))
	for i, c := range clients {
		fmt.Fprintln(os.Stderr, "running", c.name)
		if reports[i], err = judge(lab, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	notes, err := os.ReadFile("notes.md")
	if err != nil {
		return err
	}
	return os.WriteFile(out, []byte(document(clients, reports, string(notes))), 0o644)
}

// clients are those under test, with the versions that are installed.
func clients(bin string) ([]client, error) {
	goMod, err := os.ReadFile("go.mod")
	if err != nil {
		return nil, err
	}
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		return nil, err
	}
	var installed struct {
		Packages map[string]struct {
			Version string `json:"version"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(lock, &installed); err != nil {
		return nil, err
	}
	return []client{
		{"segmentio/analytics-go", "segment", []string{bin + "/segment-go"}, goVersion(goMod, "github.com/segmentio/analytics-go/v3")},
		{"posthog-go", "posthog", []string{bin + "/posthog-go"}, goVersion(goMod, "github.com/posthog/posthog-go")},
		{"@segment/analytics-node", "segment", []string{"node", "segment-node.mjs"}, installed.Packages["node_modules/@segment/analytics-node"].Version},
		{"posthog-node", "posthog", []string{"node", "posthog-node.mjs"}, installed.Packages["node_modules/posthog-node"].Version},
	}, nil
}

// goVersion finds the version that a go.mod requires.
func goVersion(goMod []byte, module string) string {
	for line := range strings.Lines(string(goMod)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == module {
			return fields[1]
		}
	}
	return "unknown"
}

// judge runs one client. The exit code 8, a rule was broken, is no error here.
func judge(lab string, c client) (report, error) {
	args := []string{"lab", "client", "--api", c.api, "--seed", "1", "--timeout", "75s", "--report", "json", "--"}
	cmd := exec.Command(lab, append(args, c.command...)...)
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	err := cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() == 8 {
		err = nil
	}
	var r report
	if err == nil {
		err = json.Unmarshal(stdout.Bytes(), &r)
	}
	return r, err
}

// marks are the verdicts in the table.
var marks = map[string]string{"pass": "yes", "fail": "**no**", "inconclusive": "?", "not_tested": "–"}

func document(clients []client, reports []report, notes string) string {
	var b strings.Builder
	b.WriteString("# Other clients in the lab\n\nWritten by `test/lab/thirdparty/run`; do not edit. What is below the tables is in `test/lab/thirdparty/notes.md`.\n\n")
	b.WriteString("| client | version | yes | no | ? | – |\n|---|---|---|---|---|---|\n")
	for i, c := range clients {
		n := reports[i].Counts
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d |\n", c.name, c.version, n["pass"], n["fail"], n["inconclusive"], n["not_tested"])
	}
	b.WriteString("\n| rule |")
	for _, c := range clients {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(clients)) + "\n")
	for i, row := range reports[0].Checks {
		fmt.Fprintf(&b, "| %s |", row.Title)
		for _, r := range reports {
			fmt.Fprintf(&b, " %s |", marks[r.Checks[i].Verdict])
		}
		b.WriteByte('\n')
	}
	b.WriteString("\nyes: kept · no: broken · ?: what was seen allows both readings · –: no occasion, or it cannot be asked of this API.\n\n## What was seen\n")
	for i, c := range clients {
		fmt.Fprintf(&b, "\n### %s %s\n\n", c.name, c.version)
		for _, k := range reports[i].Checks {
			if k.Verdict == "fail" && len(k.Evidence) > 0 {
				fmt.Fprintf(&b, "- `%s`: %s\n", k.ID, k.Evidence[0])
			}
		}
	}
	return b.String() + "\n" + notes
}
