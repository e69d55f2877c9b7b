// Package jsonsyntax owns what a body must be before anybody reads it as JSON:
// one value, in UTF-8, no name twice in an object, and not nested without end.
// It says nothing about what the value holds. It also writes JSON that no web
// page shows.
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

// Deep is a top-level member within which a body may nest deeper.
type Deep struct {
	Name  string
	Depth int
}

// Check returns invalid_json unless body is one JSON value in UTF-8
// without repeated names and not too deep.
func Check(body []byte) error { return CheckDeep(body, Deep{Depth: maxDepth}) }

// CheckDeep is Check, but for a member that may nest deeper.
func CheckDeep(body []byte, deep Deep) error {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	limit := maxDepth
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return syntaxFault(err)
		}
		if dec.StackDepth() > limit {
			return fault.New(api.CodeInvalidJSON, "the body nests deeper than %d levels", limit)
		}
		if namesMember(dec) {
			limit = maxDepth
			if token.String() == deep.Name {
				limit = deep.Depth
			}
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

// namesMember says whether what was read last is the name of a top-level
// member.
func namesMember(dec *jsontext.Decoder) bool {
	if dec.StackDepth() != 1 {
		return false
	}
	kind, read := dec.StackIndex(1)
	return kind == '{' && read%2 == 1
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
