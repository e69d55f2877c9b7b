package execution

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// redacted stands in traces for what is not to be kept or shown.
const redacted = "[redacted]"

// redact takes out of what was said to a callee, or by it, the texts that the
// flow wants kept out of traces, wherever they are.
func (o *stepRun) redact(text json.RawMessage) json.RawMessage {
	return blank(text, secrets(o.run.program, o.scope))
}

// secrets are the texts that a flow wants kept out of traces, as they are
// within JSON.
func secrets(p *flow.Program, scope *template.Scope) [][]byte {
	var list [][]byte
	for _, path := range p.Trace.Redact {
		name, rest, _ := strings.Cut(indexes.ReplaceAllString(path, ".$1"), ".")
		t, err := template.Compile("${" + name + "}")
		if err != nil {
			continue // published flows have none that cannot be compiled
		}
		value, err := t.Eval(scope)
		if err != nil {
			continue // what is not there cannot be shown
		}
		for _, one := range find(value, rest) {
			list = appendTexts(list, one)
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(list, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	return list
}

// indexes are the parts of a path that say which items of a list.
var indexes = regexp.MustCompile(`\[([0-9]+|\*)\]`)

// find returns the values at a path: members by name, items by number, all of a
// list by *.
func find(value any, path string) []any {
	if path == "" {
		return []any{value}
	}
	name, rest, _ := strings.Cut(path, ".")
	var found []any
	switch v := value.(type) {
	case map[string]any:
		if member, ok := v[name]; ok {
			found = find(member, rest)
		}
	case []any:
		for i, one := range v {
			if name == "*" || name == strconv.Itoa(i) {
				found = append(found, find(one, rest)...)
			}
		}
	}
	return found
}

// appendTexts adds the texts in a value.
func appendTexts(list [][]byte, value any) [][]byte {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			list = appendTexts(list, member)
		}
	case []any:
		for _, one := range v {
			list = appendTexts(list, one)
		}
	case nil, bool:
	case string:
		if v == "" {
			return list
		}
		if text, err := template.Encode(v); err == nil {
			list = append(list, text[1:len(text)-1])
		}
	default:
		if text, err := template.Encode(v); err == nil {
			list = append(list, text)
		}
	}
	return list
}

// blank replaces texts in JSON. A number becomes a text.
func blank(text json.RawMessage, list [][]byte) json.RawMessage {
	for _, one := range list {
		text = bytes.ReplaceAll(text, one, []byte(redacted))
	}
	if len(list) > 0 && len(text) > 0 && !json.Valid(text) { // a bare number was replaced
		return json.RawMessage(`"` + redacted + `"`)
	}
	return text
}

// redact takes out of outputs what is not to be shown; the journal needs it to
// go on, and keeps it.
func (t *Trace) redact(p *flow.Program) error {
	if len(p.Trace.Redact) == 0 {
		return nil
	}
	r := &run{x: t.Execution, program: p}
	scope, err := r.scope()
	if err != nil {
		return err
	}
	for i := range t.Steps {
		if s := &t.Steps[i]; s.State == StepFinished && s.Iteration == "" {
			if err := setStep(scope, s); err != nil {
				return err
			}
		}
	}
	list := secrets(p, scope)
	for i := range t.Steps {
		t.Steps[i].Output = blank(t.Steps[i].Output, list)
	}
	return nil
}
