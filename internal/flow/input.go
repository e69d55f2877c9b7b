package flow

import (
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// inputSchema checks inputs. Without a schema every input is valid.
type inputSchema struct{ schema *jsonschema.Schema }

// newInputSchema compiles the schema of a definition's input.
func newInputSchema(doc any) (*inputSchema, *step.Issues) {
	if doc == nil {
		return &inputSchema{}, nil
	}
	if issues := foreign("input", doc); issues != nil {
		return nil, issues
	}
	schema, err := compileSchema(doc)
	if err == nil {
		return &inputSchema{schema}, nil
	}
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = invalid.Err
	}
	if failed, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		w := &issueWriter{value: doc}
		w.collect(failed)
		for i := range w.issues {
			w.issues[i].Path = strings.TrimSuffix(member("input", w.issues[i].Path), ".")
		}
		return nil, &step.Issues{List: w.issues}
	}
	return nil, step.Refuse("input", "this is not a JSON Schema (2020-12): %s", shorten(strings.ReplaceAll(err.Error(), schemaURL, "")))
}

// foreign refuses what makes a schema depend on more than itself, or on how it
// is looked at: references to other documents, other dialects, and references
// that are resolved by who asks.
func foreign(path string, value any) *step.Issues {
	switch v := value.(type) {
	case []any:
		for i, one := range v {
			if issues := foreign(element(path, i), one); issues != nil {
				return issues
			}
		}
	case map[string]any:
		for name, one := range v {
			at := member(path, name)
			target, isText := one.(string)
			switch {
			case name == "$ref" && isText && !strings.HasPrefix(target, "#"):
				return step.Refuse(at, "a schema may refer to itself only, with a $ref that begins with #")
			case name == "$schema" && isText && target != dialect:
				return step.Refuse(at, "the dialect must be %s", dialect)
			case name == "$dynamicRef" && isText, name == "$id" && isText, name == "$vocabulary":
				return step.Refuse(at, "%s is not available", name)
			}
			if issues := foreign(at, one); issues != nil {
				return issues
			}
		}
	}
	return nil
}

func (s *inputSchema) check(input any) error {
	if s.schema == nil {
		return nil
	}
	if err := affordable(s.schema, input); err != nil {
		return err
	}
	issues := validate(s.schema, input)
	if len(issues) == 0 {
		return nil
	}
	return &InputError{Path: issues[0].Path, Message: issues[0].Message}
}
