package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// flowValidate checks definitions.
type flowValidate struct {
	Files []string `arg:"" name:"file" help:"Definitions, as JSON or YAML; - reads standard input."`
}

// Help is shown by flow validate --help.
func (*flowValidate) Help() string {
	return `Compiles each file as the server would when it is published. All that is wrong
is printed on standard output, a line each: file, path, what. No server is asked,
so a provider of models that is not set up there is not noticed here.

Exit codes: 0 all are valid, 1 a file cannot be read, 3 some are not valid.`
}

// Run checks the files.
func (c *flowValidate) Run(std streams) error {
	invalid := 0
	for _, name := range c.Files {
		content, err := readFlowFile(name, std.stdin)
		if err != nil {
			return err
		}
		lines, err := issuesOf(name, content)
		if err != nil {
			return err
		}
		if len(lines) > 0 {
			invalid++
		}
		if err := printLines(std.stdout, name, lines); err != nil {
			return err
		}
	}
	if invalid > 0 {
		return &exitError{exitRejected, fmt.Errorf("%d of %d definitions are not valid", invalid, len(c.Files))}
	}
	return nil
}

// issuesOf are the issues of a definition, each with its path.
func issuesOf(name string, content []byte) ([]string, error) {
	_, _, err := flow.CompileSource(app.FlowTypes(), content, formatOf(name, content))
	if issues, ok := errors.AsType[*step.Issues](err); ok {
		lines := make([]string, len(issues.List))
		for i, one := range issues.List {
			lines[i] = issueLine(one.Path, one.Message)
		}
		return lines, nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return []string{f.Message}, nil
	}
	return nil, err
}

// issueLine is an issue as it is printed; the path of the whole is empty.
func issueLine(path, message string) string {
	if path == "" {
		return oneLine(message)
	}
	return oneLine(path + ": " + message)
}

func printLines(w io.Writer, name string, lines []string) error {
	if len(lines) == 0 {
		lines = []string{"valid"}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "%s: %s\n", name, line); err != nil {
			return err
		}
	}
	return nil
}
