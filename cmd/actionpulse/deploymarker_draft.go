package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/cienv"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// noValue as a flag's value leaves a member out.
const noValue = "none"

// defaultEnvironment is where a deploy goes when nothing is said: what the
// server takes it for.
const defaultEnvironment = "production"

// markerDraft is the one request that is made again and again: the same bytes
// on every attempt of a step.
type markerDraft struct {
	// system is the CI/CD system; empty if none is known.
	system string
	key    string
	// keyGiven says that the key came by a flag.
	keyGiven bool
	body     []byte
	content  api.MarkerContent
	// commit is what is being deployed as far as is known, sent or not.
	commit string
	// lines say where everything comes from.
	lines []draftLine
}

// draftLine says what a member is and where it comes from.
type draftLine struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	From  string `json:"from"`
}

// draft makes the request from flags and variables. Its errors are of usage.
func (c *deployMarkerCommand) draft(lookup cienv.Lookup) (*markerDraft, error) {
	if strings.TrimSpace(c.Version) == "" {
		return nil, errors.New("--version is empty: is the variable that it comes from set?")
	}
	run, known := cienv.Find(lookup)
	d := &markerDraft{system: run.System}
	d.content.Version = c.Version
	environment := d.choose("environment", c.Environment, run.Environment)
	if environment == "" {
		environment = defaultEnvironment
		d.lines[len(d.lines)-1] = draftLine{"environment", environment, "the default"}
	}
	d.content.Environment = &environment
	if err := d.chooseKey(c, &run, known); err != nil {
		return nil, err
	}
	d.content.Commit = optional(d.choose("commit", c.Commit, run.Commit))
	d.content.URL = optional(d.choose("run-url", c.RunURL, run.URL))
	if d.content.TS = optional(d.choose("ts", c.TS, run.TS)); d.content.TS == nil {
		d.lines[len(d.lines)-1].From += "; the server notes when it makes the marker"
	}
	d.content.Title = optional(c.Title)
	d.commit = run.Commit.Text
	if d.content.Commit != nil {
		d.commit = *d.content.Commit
	}
	if err := validTS(d.content.TS); err != nil {
		return nil, err
	}
	return d, d.encode(c.Metadata)
}

// choose takes a flag before what the system says, and notes which it was.
func (d *markerDraft) choose(name, flag string, found cienv.Value) string {
	line := draftLine{Name: name, From: "nothing says it"}
	switch {
	case flag == noValue:
		line.From = "--" + name + " none"
	case flag != "":
		line.Value, line.From = flag, "--"+name
	case found.Text != "":
		line.Value, line.From = found.Text, strings.Join(found.From, ", ")
	}
	d.lines = append(d.lines, line)
	return line.Value
}

// chooseKey takes the key of the flag, or makes one.
func (d *markerDraft) chooseKey(c *deployMarkerCommand, run *cienv.Run, known bool) error {
	if c.Key != "" {
		d.key, d.keyGiven = c.Key, true
		d.lines = append(d.lines, draftLine{"key", c.Key, "--key"})
		if err := actionpulse.CheckDeployKey(c.Key); err != nil {
			return fmt.Errorf("--key: %w", err)
		}
		return nil
	}
	if !known {
		return fmt.Errorf("no key: this is none of the CI/CD systems that are known. %s", goodKey)
	}
	key, err := run.Key(*d.content.Environment, c.Name)
	if err != nil {
		return fmt.Errorf("no key: this is %w. %s", err, goodKey)
	}
	from := key.From
	if c.Name != "" {
		from = append(slices.Clip(from), "--name")
	}
	d.key = key.Text
	d.lines = append(d.lines, draftLine{"key", key.Text, strings.Join(append(slices.Clip(from), "environment"), ", ")})
	return nil
}

// goodKey says what a good key is.
const goodKey = `Give --key: a text that is the same on every attempt of this deploy and another for the next, ` +
	`such as the build's id with the environment: --key "deploy-$BUILD_ID-production". ` +
	`With a constant the next deploy would not be marked; with a random text each attempt would be`

func validTS(ts *string) error {
	if ts == nil {
		return nil
	}
	if _, err := time.Parse(time.RFC3339Nano, *ts); err != nil || strings.Contains(*ts, ",") {
		return errors.New("--ts is a time like 2026-05-01T10:00:00Z, from the build's state: another attempt has to send the same. " +
			"Without a stable one leave it out; the server then notes when it made the marker")
	}
	return nil
}

// encode writes the body; the same content always gives the same bytes.
func (d *markerDraft) encode(metadata map[string]string) error {
	if len(metadata) > 0 {
		d.content.Metadata = make(map[string]json.RawMessage, len(metadata))
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		text, err := json.Marshal(metadata[name])
		if err != nil {
			return fmt.Errorf("--metadata: %w", err)
		}
		d.content.Metadata[name] = text
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d.content); err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	d.body = bytes.TrimSpace(body.Bytes())
	return nil
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
