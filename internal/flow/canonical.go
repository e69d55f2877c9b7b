package flow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// Format is how a definition is written.
type Format string

// The formats.
const (
	JSON Format = "json"
	YAML Format = "yaml"
)

const (
	// maxDefinition is how long a definition may be, as it is sent and as it is
	// kept.
	maxDefinition = 256 << 10
	// maxLevels is how deep it may nest; blocks of steps are limited besides.
	maxLevels = 64
	// longPath is where the path of what is no JSON is cut.
	longPath = 200
)

// Canonical returns a definition as the JSON text that is kept and compared:
// the members of objects in order, without white space, numbers as they were
// written. A definition in YAML may only say what JSON can say: no anchors,
// aliases, tags or merge keys, names are texts, no name twice, and a plain
// scalar is a number, true, false or null only if JSON writes it so too, and
// otherwise a text. What it refuses is a [*step.Issues].
func Canonical(source []byte, format Format) ([]byte, error) {
	if len(source) > maxDefinition {
		return nil, tooLong()
	}
	var out []byte
	var err error
	switch format {
	case JSON:
		out, err = canonicalJSON(source)
	case YAML:
		out, err = canonicalYAML(source)
	default:
		return nil, step.Refuse("", "the format must be json or yaml")
	}
	if err != nil {
		return nil, err
	}
	if len(out) > maxDefinition {
		return nil, tooLong()
	}
	return out, nil
}

func tooLong() error {
	return step.Refuse("", "a definition has at most %d bytes", maxDefinition)
}

func canonicalJSON(source []byte) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(source))
	value, err := dec.ReadValue()
	if err != nil {
		return nil, jsonIssue(err)
	}
	out := jsontext.Value(bytes.Clone(value))
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, step.Refuse("", "something follows the JSON value")
	}
	if err := checkLevels(out); err != nil {
		return nil, err
	}
	if err := out.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, jsonIssue(err)
	}
	return out, nil
}

func jsonIssue(err error) error {
	path := ""
	if at, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		path = pointerPath(at.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return step.Refuse(path, "the member is repeated")
		}
		return step.Refuse(path, "this is not JSON in UTF-8: %v at byte %d", at.Err, at.ByteOffset)
	}
	if errors.Is(err, io.EOF) {
		return step.Refuse(path, "the definition is empty")
	}
	return step.Refuse(path, "this is not JSON: %v", err)
}

// pointerPath writes a JSON pointer as a path. Whether a number is an index or
// a name it cannot know; names that are numbers are rare.
func pointerPath(pointer jsontext.Pointer) string {
	path := ""
	for token := range pointer.Tokens() {
		if len(path) > longPath {
			return path + "…"
		}
		if at, err := strconv.Atoi(token); err == nil && at >= 0 {
			path += "[" + token + "]"
			continue
		}
		path = member(path, shorten(token))
	}
	return path
}

// member extends a path by a name.
func member(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func element(path string, index int) string {
	return fmt.Sprintf("%s[%d]", path, index)
}

func checkLevels(value jsontext.Value) error {
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		_, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return jsonIssue(err)
		}
		if dec.StackDepth() > maxLevels {
			return step.Refuse(pointerPath(dec.StackPointer()), "the definition nests deeper than %d levels", maxLevels)
		}
	}
}
