package flow

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// canonicalYAML writes YAML as JSON, and that in its canonical form. The library
// only reads the syntax: what a scalar means is decided here.
func canonicalYAML(source []byte) ([]byte, error) {
	document, err := readYAML(source)
	if err != nil {
		return nil, err
	}
	out, err := appendYAML(nil, "", document, 0)
	if err != nil {
		return nil, err
	}
	return canonicalJSON(out)
}

func readYAML(source []byte) (node *yaml.Node, err error) {
	// The reader is a library's, and what makes it fall over is bad YAML.
	defer func() {
		if recover() != nil {
			node, err = nil, step.Refuse("", "this is not YAML")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(source))
	var document, more yaml.Node
	if err := dec.Decode(&document); errors.Is(err, io.EOF) {
		return nil, step.Refuse("", "the definition is empty")
	} else if err != nil {
		return nil, step.Refuse("", "this is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, step.Refuse("", "there must be one YAML document, not more")
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, step.Refuse("", "the definition is empty")
	}
	return document.Content[0], nil
}

func appendYAML(out []byte, path string, n *yaml.Node, level int) ([]byte, error) {
	switch {
	case level > maxLevels:
		return nil, step.Refuse(path, "the definition nests deeper than %d levels", maxLevels)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, step.Refuse(path, "anchors and aliases are not allowed (line %d)", n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return nil, step.Refuse(path, "tags are not allowed: quote what is to be a text (line %d)", n.Line)
	case len(out) > 2*maxDefinition:
		return nil, tooLong()
	}
	switch n.Kind {
	case yaml.MappingNode:
		return appendMapping(out, path, n, level)
	case yaml.SequenceNode:
		return appendSequence(out, path, n, level)
	case yaml.ScalarNode:
		return appendScalar(out, path, n)
	default:
		return nil, step.Refuse(path, "this is not a value (line %d)", n.Line)
	}
}

func appendMapping(out []byte, path string, n *yaml.Node, level int) ([]byte, error) {
	out = append(out, '{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name, err := nameOf(path, key)
		if err != nil {
			return nil, err
		}
		at := member(path, shorten(name))
		if seen[name] {
			return nil, step.Refuse(at, "the member is repeated (line %d)", key.Line)
		}
		seen[name] = true
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendString(out, at, name); err != nil {
			return nil, err
		}
		if out, err = appendYAML(append(out, ':'), at, n.Content[i+1], level+1); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// nameOf returns the name of a member. One that JSON would not write as a text
// must be quoted.
func nameOf(path string, key *yaml.Node) (string, error) {
	if key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0 {
		return "", step.Refuse(path, "the name of a member must be a text (line %d)", key.Line)
	}
	if key.Tag == "!!merge" {
		return "", step.Refuse(path, "merge keys are not allowed (line %d)", key.Line)
	}
	if isPlain(key) && plainJSON(key.Value) != "" {
		return "", step.Refuse(path, "the name of a member must be a text: quote %s (line %d)", key.Value, key.Line)
	}
	return key.Value, nil
}

func appendSequence(out []byte, path string, n *yaml.Node, level int) ([]byte, error) {
	out = append(out, '[')
	for i, one := range n.Content {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendYAML(out, element(path, i), one, level+1); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendScalar(out []byte, path string, n *yaml.Node) ([]byte, error) {
	if isPlain(n) {
		if text := plainJSON(n.Value); text != "" {
			return append(out, text...), nil
		}
	}
	return appendString(out, path, n.Value)
}

func appendString(out []byte, path, text string) ([]byte, error) {
	quoted, err := jsontext.AppendQuote(out, text)
	if err != nil {
		return nil, step.Refuse(path, "the text is not UTF-8")
	}
	return quoted, nil
}

func isPlain(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// plainJSON returns what a plain scalar is in JSON, or nothing if it is a text:
// 012, 0x1F, 1_000, yes and 2024-01-01 are texts.
func plainJSON(text string) string {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return "null"
	case "true", "True", "TRUE":
		return "true"
	case "false", "False", "FALSE":
		return "false"
	}
	if c := text[0]; c != '-' && (c < '0' || c > '9') {
		return ""
	}
	if value := jsontext.Value(text); value.IsValid() && value.Kind() == '0' {
		return strings.TrimSpace(text)
	}
	return ""
}
