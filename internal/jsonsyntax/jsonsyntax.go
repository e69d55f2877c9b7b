// Package jsonsyntax owns what a body must be before anybody reads it as JSON:
// one value, in UTF-8, no name twice in an object, and not nested without end.
// It says nothing about what the value holds.
package jsonsyntax

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// maxDepth is how deep a body may nest.
const maxDepth = 64

// Check returns invalid_json unless body is one JSON value in UTF-8
// without repeated names and not too deep.
func Check(body []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		_, err := dec.ReadToken()
		if err != nil {
			return syntaxFault(err)
		}
		if dec.StackDepth() > maxDepth {
			return fault.New(api.CodeInvalidJSON, "the body nests deeper than %d levels", maxDepth)
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return fault.New(api.CodeInvalidJSON, "something follows the JSON value")
	}
	return nil
}

func syntaxFault(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fault.New(api.CodeInvalidJSON, "a member name is repeated")
	}
	if errors.Is(err, io.EOF) {
		return fault.New(api.CodeInvalidJSON, "the body is empty")
	}
	return fault.New(api.CodeInvalidJSON, "the body is not valid JSON in UTF-8")
}
