package flow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

func checked(t *testing.T, schema, input string) *flow.InputError {
	t.Helper()
	p := mustCompile(t, `{"steps": [], "input": `+schema+`}`)
	value, err := template.Decode([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	err = p.CheckInput(value)
	if err == nil {
		return nil
	}
	failed, ok := errors.AsType[*flow.InputError](err)
	if !ok {
		t.Fatalf("got %T, %v", err, err)
	}
	return failed
}

func TestCheckInput(t *testing.T) {
	t.Parallel()
	const schema = `{"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
		"text": {"type": "string", "minLength": 2, "maxLength": 10, "pattern": "^[a-z]+$"}, "n": {"type": "integer", "minimum": 1, "maximum": 9007199254740993},
		"mail": {"format": "email"}, "at": {"format": "date-time"}, "kind": {"enum": ["a", "b"]}, "list": {"items": {"$ref": "#/$defs/one"}, "maxItems": 2, "uniqueItems": true},
		"one": {"oneOf": [{"type": "string"}, {"type": "number"}]}, "never": false, "odd": {"format": "no-such-format"}},
		"$defs": {"one": {"type": "object", "properties": {"x": {"type": "boolean"}}}}}`
	for _, input := range []string{
		`{"text": "ab"}`, `{"text": "ab", "n": 9007199254740993}`, `{"text": "ab", "n": 2.0}`, `{"text": "ab", "mail": "a@b.example", "at": "2030-01-02T03:04:05Z"}`,
		`{"text": "ab", "list": [{"x": true}, {}], "one": 1, "odd": "x"}`,
	} {
		if failed := checked(t, schema, input); failed != nil {
			t.Errorf("%s: %v", input, failed)
		}
	}
	for input, path := range map[string]string{
		`null`: "", `[]`: "", `{}`: "text", `{"text": 1}`: "text", `{"text": "a"}`: "text", `{"text": "abcdefghijkl"}`: "text", `{"text": "AB"}`: "text",
		`{"text": "ab", "more": 1}`: "more", `{"text": "ab", "n": 0}`: "n", `{"text": "ab", "n": 1.5}`: "n", `{"text": "ab", "n": 9007199254740994}`: "n",
		`{"text": "ab", "mail": "nobody"}`: "mail", `{"text": "ab", "at": "yesterday"}`: "at", `{"text": "ab", "kind": "c"}`: "kind",
		`{"text": "ab", "list": [{"x": 1}]}`: "list[0].x", `{"text": "ab", "list": [1, 1]}`: "list", `{"text": "ab", "one": true}`: "one", `{"text": "ab", "never": 1}`: "never",
	} {
		failed := checked(t, schema, input)
		if failed == nil || failed.Path != path || failed.Message == "" {
			t.Errorf("%s: got %v, want it at %q", input, failed, path)
		}
	}
}

// TestInputErrorsRepeatNoValue: a refused input may hold what nobody should
// read in a log.
func TestInputErrorsRepeatNoValue(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("geheim", 20)
	for _, schema := range []string{
		`{"type": "integer"}`, `{"pattern": "^a$"}`, `{"format": "email"}`, `{"format": "uuid"}`, `{"enum": ["a"]}`, `{"const": "a"}`, `{"maxLength": 3}`, `{"not": {}}`,
		`{"anyOf": [{"type": "number"}, {"minLength": 1000}]}`, `{"format": "regex", "pattern": "^[0-9]*$"}`, `{"format": "date-time"}`, `{"format": "uri"}`,
	} {
		failed := checked(t, schema, `"`+secret+`"`)
		if failed == nil || strings.Contains(failed.Error(), "geheim") {
			t.Errorf("%s: got %v", schema, failed)
		}
	}
	failed := checked(t, `{"additionalProperties": false}`, `{"`+secret+`": 1}`)
	if failed == nil || strings.Contains(failed.Error(), secret[:65]) {
		t.Errorf("a name of a member is repeated: %v", failed)
	}
}

// TestHostileSchemasEnd: a check ends soon, whatever a schema and an input are.
func TestHostileSchemasEnd(t *testing.T) {
	t.Parallel()
	var doubled strings.Builder
	doubled.WriteString(`{"$ref": "#/$defs/d0", "$defs": {`)
	for i := range 60 {
		fmt.Fprintf(&doubled, `"d%d": {"not": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}}, `, i, i+1, i+1)
	}
	doubled.WriteString(`"d60": {"type": "null"}}}`)
	both := `{"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["b"]}, {"properties": {"a": {"$ref": "#"}}, "required": ["c"]}]}`
	deep := strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60)
	long := strings.Repeat("a", 100_000)
	for schema, input := range map[string]string{
		`{"$ref": "#"}`: `1`,
		`{"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}`: `{}`,
		doubled.String(): `"x"`, both: deep,
		`{"pattern": "` + strings.Repeat("(a|b|ab)*", 90) + `c$"}`:                               `"` + long + `"`,
		`{"items": {"enum": [` + strings.TrimSuffix(strings.Repeat(`"x",`, 20_000), ",") + `]}}`: `[` + strings.TrimSuffix(strings.Repeat(`"y",`, 50_000), ",") + `]`,
	} {
		began := time.Now()
		if failed := checked(t, schema, input); failed == nil {
			t.Errorf("%.80s: no error", schema)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%.80s: took %v", schema, took)
		}
	}
	// What refers to itself and goes down with the input is fine.
	tree := `{"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}, "additionalProperties": false}`
	if failed := checked(t, tree, `{"a": {"b": {"a": {}}}, "b": {}}`); failed != nil {
		t.Error(failed)
	}
	if failed := checked(t, `{"items": {"type": "integer"}}`, `[`+strings.TrimSuffix(strings.Repeat(`7,`, 100_000), ",")+`]`); failed != nil {
		t.Error(failed)
	}
}
