package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// longAgo is how old a marker is that a replay should not be of, unless an old
// run was started again.
const longAgo = 24 * time.Hour

// warnings say what is odd about an answer that is a success all the same.
func (d *markerDraft) warnings(m *actionpulse.DeployMarker, now time.Time) (out []string) {
	if !m.Replayed {
		return nil
	}
	if m.DeletedAt != nil {
		out = append(out, fmt.Sprintf("the marker was deleted at %s, and a repeat does not bring it back; to mark the deploy again, give another key by --name or --key",
			oneLine(*m.DeletedAt)))
	}
	another := func(what, marker, now string) {
		out = append(out, fmt.Sprintf("the marker is of %s %s, and this deploy of %s: the key %s is a constant, and this deploy is not marked. Put the build's id into the key",
			what, oneLine(marker), oneLine(now), d.key))
	}
	switch {
	case m.Version != d.content.Version:
		another("version", m.Version, d.content.Version)
	case m.Commit != nil && d.commit != "" && *m.Commit != d.commit:
		another("commit", *m.Commit, d.commit)
	case m.Environment != *d.content.Environment:
		another("environment", m.Environment, *d.content.Environment)
	default:
		if made, err := time.Parse(time.RFC3339Nano, m.CreatedAt); err == nil && now.Sub(made) > longAgo {
			out = append(out, fmt.Sprintf("the marker was made %d hours ago. If this is not an old run that was started again, the key %s is a constant; "+
				"if it is, and the old version is deployed anew, mark that by another --name", int(now.Sub(made).Hours()), d.key))
		}
	}
	return out
}

// printMarked prints the marker.
func (c *deployMarkerCommand) printMarked(w io.Writer, d *markerDraft, m *actionpulse.DeployMarker, warnings []string) error {
	if c.JSON {
		return printJSON(w, struct {
			Replayed bool        `json:"replayed"`
			Key      string      `json:"idempotency_key"`
			System   string      `json:"ci,omitempty"`
			Marker   *api.Marker `json:"marker"`
			Warnings []string    `json:"warnings,omitempty"`
		}{m.Replayed, d.key, d.system, &m.Marker, warnings})
	}
	what := "marked"
	if m.Replayed {
		what = "already marked"
	}
	lines := []draftLine{
		{Name: what, Value: fmt.Sprintf("%s in %s at %s", m.Version, m.Environment, m.TS)},
		{Name: "id", Value: m.ID},
		{Name: "key", Value: d.key},
	}
	for _, l := range []struct {
		name  string
		value *string
	}{{"commit", m.Commit}, {"url", m.URL}, {"title", m.Title}, {"deleted", m.DeletedAt}} {
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
