package flow

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// schemaURL is the base of references within a schema. Nothing is ever loaded
// from it.
const schemaURL = "urn:actionpulse:schema"

// maxPatterns is how large the patterns of a schema may be together. Each counts
// twice: it is read when the schema is checked, and when it is compiled.
const maxPatterns = 200_000

// noLoader refuses what a schema refers to outside of itself.
type noLoader struct{}

// Load implements [jsonschema.URLLoader].
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may refer to itself only, with a $ref that begins with #")
}

// compileSchema compiles a schema as [template.Decode] reads it. Formats count,
// since whoever writes format: email means it; unknown ones are ignored.
// Patterns are RE2.
func compileSchema(doc any) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	left := maxPatterns
	compiler.UseRegexpEngine(func(source string) (jsonschema.Regexp, error) {
		pattern, err := template.CompilePattern(source)
		if err != nil {
			return nil, err
		}
		if left -= pattern.Size; left < 0 {
			return nil, errors.New("the patterns of a schema are too large together")
		}
		return pattern, nil
	})
	compiler.RegisterFormat(&jsonschema.Format{Name: "regex", Validate: isPattern})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
}

// isPattern is the format regex.
func isPattern(value any) error {
	source, ok := value.(string)
	if !ok {
		return nil
	}
	_, err := template.CompilePattern(source)
	return err
}

// validate returns all that a schema finds wrong with a value.
func validate(s *jsonschema.Schema, value any) []step.Issue {
	err := s.Validate(value)
	if err == nil {
		return nil
	}
	failed, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []step.Issue{{Message: "the value cannot be checked"}}
	}
	w := &issueWriter{value: value}
	w.collect(failed)
	slices.SortStableFunc(w.issues, func(a, b step.Issue) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(w.issues)
}

// issueWriter writes the errors of the library in our words. They never repeat
// the value.
type issueWriter struct {
	value  any
	issues []step.Issue
}

func (w *issueWriter) add(path, format string, args ...any) {
	w.issues = append(w.issues, step.Issue{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (w *issueWriter) collect(e *jsonschema.ValidationError) {
	path := w.path(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		w.add(path, "%s", alternatives(e))
		return
	case *kind.AdditionalProperties:
		for _, name := range slices.Sorted(slices.Values(k.Properties)) {
			w.add(member(path, shorten(name)), "unknown member")
		}
		return
	case *kind.Required:
		for _, name := range k.Missing {
			w.add(member(path, name), "the member is required")
		}
		return
	case *kind.PropertyNames:
		w.add(member(path, shorten(k.Property)), "the name is not allowed")
		return
	}
	if len(e.Causes) == 0 {
		w.add(path, "%s", say(e.ErrorKind))
		return
	}
	for _, cause := range e.Causes {
		w.collect(cause)
	}
}

// alternatives says what is missing if every alternative asks for members.
func alternatives(e *jsonschema.ValidationError) string {
	if one, ok := e.ErrorKind.(*kind.OneOf); ok && len(one.Subschemas) > 0 {
		return "only one of the alternatives may hold, and several do"
	}
	var names []string
	for _, cause := range e.Causes {
		required, ok := cause.ErrorKind.(*kind.Required)
		if !ok || len(cause.InstanceLocation) != len(e.InstanceLocation) {
			return "none of the alternatives holds"
		}
		names = append(names, required.Missing...)
	}
	return "one of these members is required: " + strings.Join(names, ", ")
}

func say(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, not %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return "must be one of " + listed(k.Want)
	case *kind.Const:
		return "must be " + listed([]any{k.Want})
	case *kind.Format:
		return fmt.Sprintf("is not a valid %s", k.Want)
	case *kind.Pattern:
		return "must match " + shorten(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d elements", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d elements", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d members", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d members", k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("the elements %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.DependentRequired:
		return fmt.Sprintf("with %s, these members are required: %s", shorten(k.Prop), strings.Join(k.Missing, ", "))
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.Not:
		return "is what must not be"
	default:
		return sayNumber(k)
	}
}

func sayNumber(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "must be at least " + shorten(k.Want.RatString())
	case *kind.Maximum:
		return "must be at most " + shorten(k.Want.RatString())
	case *kind.ExclusiveMinimum:
		return "must be more than " + shorten(k.Want.RatString())
	case *kind.ExclusiveMaximum:
		return "must be less than " + shorten(k.Want.RatString())
	case *kind.MultipleOf:
		return "must be a multiple of " + shorten(k.Want.RatString())
	case *kind.RefCycle:
		return "the schema refers to itself without end"
	default:
		return "is not what the schema asks for: " + strings.Join(k.KeywordPath(), ".")
	}
}

// listed names some of the values that a schema allows.
func listed(values []any) string {
	const most = 10
	var texts []string
	for _, v := range values[:min(len(values), most)] {
		texts = append(texts, shorten(fmt.Sprint(v)))
	}
	if len(values) > most {
		texts = append(texts, "…")
	}
	return strings.Join(texts, ", ")
}

// path writes where in the value something is: steps[2].cases[0].when.
func (w *issueWriter) path(tokens []string) string {
	path, at := "", w.value
	for _, token := range tokens {
		switch v := at.(type) {
		case []any:
			index, err := strconv.Atoi(token)
			if err != nil || index < 0 || index >= len(v) {
				return path
			}
			path, at = element(path, index), v[index]
		case map[string]any:
			path, at = member(path, shorten(token)), v[token]
		default:
			return path
		}
	}
	return path
}

// shorten keeps what others have written readable in a message.
func shorten(text string) string {
	const most = 64
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
