package execution

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow"
	httpstep "github.com/actionpulse/actionpulse/internal/flow/step/http"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// httpType is the type of steps whose outputs have headers.
const httpType = "http"

// shownOutput is what may be shown of the output of a step whatever its flow
// says: without headers that carry credentials.
func shownOutput(s *Step) json.RawMessage {
	if s.Type != httpType {
		return s.Output
	}
	return httpstep.Shown(s.Output)
}

// redacted stands in traces for what is not to be kept or shown.
const redacted = "[redacted]"

// secret is a text that a flow wants kept out of traces, wherever it is: as it
// is, and as it is within JSON.
type secret struct{ plain, json []byte }

// secrets are the texts at the paths of the flow, in what has been given to the
// run and what its steps have given; own are values of steps that are not in the
// journal yet. scope is nil, or what a step sees.
func (r *run) secrets(scope *template.Scope, own map[string][]any) []secret {
	var list []secret
	for _, path := range r.program.Trace.Redact {
		name, rest, _ := strings.Cut(indexes.ReplaceAllString(path, ".$1"), ".")
		for _, value := range r.values(name, &rest, scope, own) {
			for _, one := range find(value, rest) {
				list = appendTexts(list, one)
			}
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(list, func(a, b secret) int { return cmp.Compare(len(b.json), len(a.json)) })
	return list
}

// values are what the first name of a path stands for; of steps that is the
// second one, which is taken off the rest.
func (r *run) values(name string, rest *string, scope *template.Scope, own map[string][]any) []any {
	switch name {
	case "input":
		return decoded(r.x.Input)
	case "context":
		return decoded(r.x.Context)
	case "steps":
		id, within, _ := strings.Cut(*rest, ".")
		*rest = within
		list := slices.Clone(own[id])
		r.mu.Lock()
		defer r.mu.Unlock()
		for at, s := range r.journal {
			if at.Step == id && s.Output != nil {
				list = append(list, decoded(s.Output)...)
			}
		}
		return list
	}
	if t, err := template.Compile("${" + name + "}"); err == nil && scope != nil {
		if value, err := t.Eval(scope); err == nil {
			return []any{value}
		}
	}
	return nil // what is not there cannot be shown
}

func decoded(text json.RawMessage) []any {
	value, err := template.Decode(text)
	if err != nil {
		return nil
	}
	return []any{value}
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
func appendTexts(list []secret, value any) []secret {
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
		list = appendText(list, v)
	default:
		if text, err := template.Encode(v); err == nil {
			list = append(list, secret{text, text})
		}
	}
	return list
}

// appendText adds a text, and what becomes of it in a URL and in JSON that is
// itself a text.
func appendText(list []secret, text string) []secret {
	if text == "" {
		return list
	}
	forms := []string{text, url.QueryEscape(text), url.PathEscape(text)}
	if inner, err := template.Encode(text); err == nil {
		forms = append(forms, string(inner[1:len(inner)-1]))
	}
	slices.Sort(forms)
	for _, form := range slices.Compact(forms) {
		if encoded, err := template.Encode(form); err == nil {
			list = append(list, secret{[]byte(form), encoded[1 : len(encoded)-1]})
		}
	}
	return list
}

// blank replaces texts in JSON. A number becomes a text.
func blank(text json.RawMessage, list []secret) json.RawMessage {
	for _, one := range list {
		text = bytes.ReplaceAll(text, one.json, []byte(redacted))
	}
	if len(list) > 0 && len(text) > 0 && !json.Valid(text) { // a bare number was replaced
		return json.RawMessage(`"` + redacted + `"`)
	}
	return text
}

// blankText replaces texts in what is said to people.
func blankText(text string, list []secret) string {
	for _, one := range list {
		text = strings.ReplaceAll(text, string(one.plain), redacted)
	}
	return storable(text)
}

// redact takes out of outputs what is not to be shown; the journal needs it to
// go on, and keeps it.
func (t *Trace) redact(p *flow.Program) {
	for i := range t.Steps {
		t.Steps[i].Output = shownOutput(&t.Steps[i])
	}
	if len(p.Trace.Redact) == 0 {
		return
	}
	r := &run{x: t.Execution, program: p, journal: map[Place]*Step{}}
	for i := range t.Steps {
		r.journal[t.Steps[i].Place] = new(t.Steps[i])
	}
	list := r.secrets(nil, nil)
	for i := range t.Steps {
		t.Steps[i].Output = blank(t.Steps[i].Output, list)
	}
}
