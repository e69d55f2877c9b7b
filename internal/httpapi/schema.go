package httpapi

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/actionpulse/actionpulse/internal/fault"
)

// schemaPrefix is where schemas stand in the API document.
const schemaPrefix = "#/components/schemas/"

// A list is never null: neither in what is sent nor in what is read.
func init() { huma.DefaultArrayNullable = false } //nolint:gochecknoinits // the library has no other way to say so

func newRegistry() huma.Registry {
	return huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)
}

// typeSchema is the schema of one Go type. It is the one in the API document:
// what is checked is what is documented.
type typeSchema struct {
	registry huma.Registry
	root     *huma.Schema
}

// typeSchemas holds a *typeSchema by reflect.Type. Each has a registry of its
// own, which does not change any more, so that it can be read by many.
var typeSchemas sync.Map

func schemaOf(t reflect.Type) *typeSchema {
	if s, ok := typeSchemas.Load(t); ok {
		return s.(*typeSchema)
	}
	r := newRegistry()
	s, _ := typeSchemas.LoadOrStore(t, &typeSchema{registry: r, root: r.Schema(t, false, "Body")})
	return s.(*typeSchema)
}

// check returns validation_failed for the first value in v that the schema
// does not allow, in the order of names.
func (s *typeSchema) check(v any) error { return s.value(s.root, v, "") }

// value checks one value. Objects and lists are walked here and not by the
// library, which takes names in any case for known and loses its place where a
// name holds a dot.
func (s *typeSchema) value(schema *huma.Schema, v any, at place) error {
	for schema.Ref != "" {
		schema = s.registry.SchemaFromRef(schema.Ref)
	}
	if (v == nil && schema.Nullable) || (schema.Type == "" && schema.OneOf == nil) {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		if schema.Type == huma.TypeObject {
			return s.object(schema, v, at)
		}
	case []any:
		if schema.Type == huma.TypeArray {
			return s.list(schema, v, at)
		}
	}
	var result huma.ValidateResult
	huma.Validate(s.registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, &result)
	if len(result.Errors) > 0 {
		return at.fault("must be " + describe(schema))
	}
	return nil
}

func (s *typeSchema) object(schema *huma.Schema, members map[string]any, at place) error {
	for _, name := range schema.Required {
		if v, ok := members[name]; !ok || (v == nil && !s.nullable(schema.Properties[name])) {
			return at.member(name).fault("is required")
		}
	}
	if n := len(members); schema.MaxProperties != nil && n > *schema.MaxProperties {
		return at.fault("must be " + describe(schema))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		v, property := members[name], schema.Properties[name]
		switch rest, _ := schema.AdditionalProperties.(*huma.Schema); {
		case property != nil && v == nil: // absent
		case property != nil:
			if err := s.value(property, v, at.member(name)); err != nil {
				return err
			}
		case rest != nil:
			if err := s.value(rest, v, at.member(name)); err != nil {
				return err
			}
		case schema.AdditionalProperties == false:
			return at.member(name).fault("is not known here")
		}
	}
	return nil
}

func (s *typeSchema) nullable(schema *huma.Schema) bool {
	return schema.Nullable || (schema.Type == "" && schema.Ref == "")
}

func (s *typeSchema) list(schema *huma.Schema, items []any, at place) error {
	if (schema.MinItems != nil && len(items) < *schema.MinItems) || (schema.MaxItems != nil && len(items) > *schema.MaxItems) {
		return at.fault("must be " + describe(schema))
	}
	for i, item := range items {
		if err := s.value(schema.Items, item, at.index(i)); err != nil {
			return err
		}
	}
	return nil
}

// place is where a value stands in a body, like steps[0].event; empty for the
// body itself.
type place string

// maxShown is the longest submitted text that a refusal repeats.
const maxShown = 64

func (p place) member(name string) place {
	if runes := []rune(name); len(runes) > maxShown {
		name = string(runes[:maxShown-1]) + "…"
	}
	if p == "" {
		return place(name)
	}
	return p + "." + place(name)
}

func (p place) index(i int) place { return p + place("["+strconv.Itoa(i)+"]") }

// token is a member or an index, as a JSON pointer writes it.
func (p place) token(text string) place {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil && p != "" {
		return p.index(int(n))
	}
	return p.member(text)
}

// fault is a validation_failed for this place. The message never repeats the
// value.
func (p place) fault(what string) error {
	if p == "" {
		p = "body"
	}
	return fault.Field(string(p), "%s %s", string(p), what)
}
