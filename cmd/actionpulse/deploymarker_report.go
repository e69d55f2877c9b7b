package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// longAgo is how old a marker is that a replay should not be of, unless an old
// run was started again.
const longAgo = 24 * time.Hour

// warnings say what is odd about an answer that is a success all the same.
func (m *marked) warnings(d *markerDraft, now time.Time) (out []string) {
	if !m.replayed {
		return nil
	}
	if m.marker.DeletedAt != nil {
		out = append(out, fmt.Sprintf("the marker was deleted at %s, and a repeat does not bring it back; to mark the deploy again, give another key by --name or --key",
			oneLine(*m.marker.DeletedAt)))
	}
	another := func(what, marker, now string) {
		out = append(out, fmt.Sprintf("the marker is of %s %s, and this deploy of %s: the key %s is a constant, and this deploy is not marked. Put the build's id into the key",
			what, oneLine(marker), oneLine(now), d.key))
	}
	switch {
	case m.marker.Version != d.content.Version:
		another("version", m.marker.Version, d.content.Version)
	case m.marker.Commit != nil && d.commit != "" && *m.marker.Commit != d.commit:
		another("commit", *m.marker.Commit, d.commit)
	case m.marker.Environment != *d.content.Environment:
		another("environment", m.marker.Environment, *d.content.Environment)
	default:
		if made, err := time.Parse(time.RFC3339Nano, m.marker.CreatedAt); err == nil && now.Sub(made) > longAgo {
			out = append(out, fmt.Sprintf("the marker was made %d hours ago. If this is not an old run that was started again, the key %s is a constant; "+
				"if it is, and the old version is deployed anew, mark that by another --name", int(now.Sub(made).Hours()), d.key))
		}
	}
	return out
}

// printMarked prints the marker.
func (c *deployMarkerCommand) printMarked(w io.Writer, d *markerDraft, m *marked, warnings []string) error {
	if c.JSON {
		return printJSON(w, struct {
			Replayed bool            `json:"replayed"`
			Key      string          `json:"idempotency_key"`
			System   string          `json:"ci,omitempty"`
			Marker   json.RawMessage `json:"marker"`
			Warnings []string        `json:"warnings,omitempty"`
		}{m.replayed, d.key, d.system, m.text, warnings})
	}
	what := "marked"
	if m.replayed {
		what = "already marked"
	}
	lines := []draftLine{
		{Name: what, Value: fmt.Sprintf("%s in %s at %s", m.marker.Version, m.marker.Environment, m.marker.TS)},
		{Name: "id", Value: m.marker.ID}, {Name: "key", Value: d.key},
	}
	for _, l := range []struct {
		name  string
		value *string
	}{{"commit", m.marker.Commit}, {"url", m.marker.URL}, {"title", m.marker.Title}, {"deleted", m.marker.DeletedAt}} {
		if l.value != nil {
			lines = append(lines, draftLine{Name: l.name, Value: *l.value})
		}
	}
	return printColumns(w, lines)
}

// printDraft prints what would be sent, and where it comes from.
func (c *deployMarkerCommand) printDraft(w io.Writer, d *markerDraft) error {
	if c.JSON {
		return printJSON(w, struct {
			System string          `json:"ci,omitempty"`
			Key    string          `json:"idempotency_key"`
			Body   json.RawMessage `json:"body"`
			From   []draftLine     `json:"from"`
		}{d.system, d.key, d.body, d.lines})
	}
	system := d.system
	if system == "" {
		system = "none that is known"
	}
	lines := []draftLine{{Name: "CI/CD system", Value: system}, {Name: "version", Value: c.Version, From: "--version"}}
	if err := printColumns(w, append(lines, d.lines...)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n", d.body)
	return err
}

// printColumns prints lines in columns, in a form that a terminal can show.
func printColumns(w io.Writer, lines []draftLine) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		value, from := l.Value, l.From
		if value == "" {
			value = "-"
		}
		if from != "" {
			from = "\t(" + from + ")"
		}
		if _, err := fmt.Fprintf(t, "%s\t%s%s\n", l.Name, oneLine(value), from); err != nil {
			return err
		}
	}
	return t.Flush()
}
