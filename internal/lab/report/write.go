package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Format names a form in which a report is written.
type Format string

// The formats.
const (
	FormatText  Format = "text"
	FormatJSON  Format = "json"
	FormatJUnit Format = "junit"
)

// Write writes the report in a format, or returns an error about the format
// or from w.
func (r *Report) Write(w io.Writer, f Format) error {
	switch f {
	case FormatText:
		return r.Text(w)
	case FormatJSON:
		return r.JSON(w)
	case FormatJUnit:
		return r.JUnit(w)
	default:
		return fmt.Errorf("no report is called %q: text, json or junit", string(f))
	}
}

// marks are the verdicts as the text shows them, of one width.
var marks = map[Verdict]string{
	Pass:         "pass        ",
	Fail:         "FAIL        ",
	Inconclusive: "inconclusive",
	NotTested:    "not tested  ",
}

// Text writes the report for a person: every check with its verdict and the
// evidence for it; of a pass, only the first. The last line counts the verdicts.
func (r *Report) Text(w io.Writer) error {
	b := new(strings.Builder)
	fmt.Fprintf(b, "%s: %s\nseed %d", r.Tool, r.Subject, r.Seed)
	for _, s := range r.Settings {
		fmt.Fprintf(b, ", %s %s", s.Name, s.Value)
	}
	b.WriteString("\n\n")
	width := 0
	for i := range r.Checks {
		width = max(width, len(r.Checks[i].ID))
	}
	for i := range r.Checks {
		r.Checks[i].text(b, width)
	}
	c := r.Counts()
	fmt.Fprintf(b, "\n%d passed, %d failed, %d inconclusive, %d not tested, in %v\n", c.Pass, c.Fail, c.Inconclusive, c.NotTested, r.Took.Round(time.Millisecond))
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Check) text(b *strings.Builder, width int) {
	mark, ok := marks[c.Verdict]
	if !ok {
		mark = marks[Fail]
	}
	fmt.Fprintf(b, "%s  %-*s  %s\n", mark, width, c.ID, c.Title)
	evidence := c.Evidence
	switch {
	case c.Verdict == Pass && len(evidence) > 1:
		evidence = []string{fmt.Sprintf("%s (and %d more)", evidence[0], len(evidence)-1)}
	case mark == marks[Fail]:
		fmt.Fprintf(b, "    rule: %s\n", c.Source)
	}
	for _, line := range evidence {
		fmt.Fprintf(b, "    - %s\n", strings.ReplaceAll(line, "\n", "\n      "))
	}
}

// JSON writes the report as one indented object: the members of [Report] and
// "counts". Lists are never null.
func (r *Report) JSON(w io.Writer) error {
	full := struct {
		Report

		Counts Counts `json:"counts"`
	}{Report: *r, Counts: r.Counts()}
	full.Settings = append([]Setting{}, r.Settings...)
	full.Checks = append([]Check{}, r.Checks...)
	for i := range full.Checks {
		full.Checks[i].Evidence = append([]string{}, full.Checks[i].Evidence...)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(full)
}
