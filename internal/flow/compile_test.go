package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, `{
		"input": {"type": "object", "properties": {"n": {"type": "integer"}}},
		"trace": {"record": false, "redact": ["input.people[*].email"]},
		"steps": [
			{"id": "a", "type": "transform", "value": "${input.n}", "if": "${input.n > 0}", "timeout": "1m30s"},
			{"id": "b", "type": "parallel", "over": "${[steps.a.output]}", "max_items": 7, "steps": [
				{"id": "c", "type": "call", "what": "${item} ${index} ${steps.a.output}", "retries": 0, "on_interrupt": "retry"},
				{"id": "d", "type": "branch", "cases": [{"when": "${steps.c != nil}", "steps": [{"id": "e", "type": "transform", "value": "${steps.c.x} ${item}"}], "output": "${steps.e.output}"}]}
			], "output": "${steps.d.output} ${item}"},
			{"id": "f", "type": "call"}
		],
		"output": "${steps.b.output}",
		"limits": {"timeout": "2h"}
	}`)
	if p.Count != 6 || len(p.Steps.Steps) != 3 || p.Priced() || p.Hold() != 0 || p.Limits.Timeout != 2*time.Hour {
		t.Errorf("got %+v", p)
	}
	if diff := cmp.Diff(p.Trace, flow.Trace{Redact: []string{"input.people[*].email"}}); diff != "" {
		t.Error(diff)
	}
	a, c, f := p.Step("a"), p.Step("c"), p.Step("f")
	if a.If == nil || a.Timeout != 90*time.Second || a.Retries != 0 {
		t.Errorf("got %+v", a)
	}
	if c.Retries != 0 || c.OnInterrupt != step.Retry || f.Retries != 2 || f.OnInterrupt != step.Fail {
		t.Errorf("got %+v, %+v", c, f)
	}
	if b := p.Step("b"); b.Most != 7 || b.Inner[0].Steps[0] != c || p.Step("nothing") != nil {
		t.Errorf("got %+v", b)
	}
}

func TestTheLeastDefinition(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, `{"steps": []}`)
	value, err := p.Output.Eval(template.NewScope(nil, nil))
	if value != nil || err != nil || p.Limits.Timeout != flow.DefaultTimeout || !p.Trace.Record {
		t.Errorf("got %v, %v, %+v", value, err, p)
	}
	if err := p.CheckInput(map[string]any{"any": "thing"}); err != nil {
		t.Error(err)
	}
}

// refused are definitions and the paths of all that is wrong with each.
var refused = map[string][]string{
	`[]`:                                     {""},
	`null`:                                   {""},
	`{}`:                                     {"steps"},
	`{"steps": [], "step": 1, "outputs": 2}`: {"outputs", "step"},
	`{"steps": {}}`:                          {"steps"},
	`{"steps": [1]}`:                         {"steps[0]"},
	`{"steps": [{}]}`:                        {"steps[0].id", "steps[0].type"},
	`{"steps": [{"id": "a", "type": "magic"}]}`:                                                                                                                   {"steps[0].type"},
	`{"steps": [{"id": "__proto__", "type": "transform", "value": 1}]}`:                                                                                           {"steps[0].id"},
	`{"steps": [{"id": "A", "type": "transform", "value": 1}]}`:                                                                                                   {"steps[0].id"},
	`{"steps": [{"id": "a\n", "type": "transform", "value": 1}]}`:                                                                                                 {"steps[0].id"},
	`{"steps": [{"id": "` + strings.Repeat("a", 65) + `", "type": "transform", "value": 1}]}`:                                                                     {"steps[0].id"},
	`{"steps": [{"id": "a", "type": "transform", "vlaue": 1}]}`:                                                                                                   {"steps[0].value", "steps[0].vlaue"},
	`{"steps": [{"id": "a", "type": "branch", "cases": [{"when": true}, {"wenn": true}]}]}`:                                                                       {"steps[0].cases[1].wenn", "steps[0].cases[1].when"},
	`{"steps": [{"id": "a", "type": "transform", "value": 1, "if": "yes"}]}`:                                                                                      {"steps[0].if"},
	`{"steps": [{"id": "a", "type": "transform", "value": 1, "if": "${"}]}`:                                                                                       {"steps[0].if"},
	`{"steps": [{"id": "a", "type": "transform", "value": 1, "timeout": "0s"}]}`:                                                                                  {"steps[0].timeout"},
	`{"steps": [{"id": "a", "type": "transform", "value": 1, "timeout": "25h"}]}`:                                                                                 {"steps[0].timeout"},
	`{"steps": [{"id": "a", "type": "transform", "value": 1, "timeout": "99999999999h"}]}`:                                                                        {"steps[0].timeout"},
	`{"steps": [{"id": "a", "type": "transform", "value": 1, "timeout": 5}]}`:                                                                                     {"steps[0].timeout"},
	`{"steps": [{"id": "a", "type": "transform", "value": 1, "retries": 1, "on_interrupt": "fail"}]}`:                                                             {"steps[0].on_interrupt", "steps[0].retries"},
	`{"steps": [{"id": "a", "type": "call", "retries": 6}]}`:                                                                                                      {"steps[0].retries"},
	`{"steps": [{"id": "a", "type": "call", "on_interrupt": "maybe"}]}`:                                                                                           {"steps[0].on_interrupt"},
	`{"steps": [` + steps("a", "b", "a") + `]}`:                                                                                                                   {"steps[2].id"},
	`{"steps": [` + steps("a") + `, {"id": "b", "type": "parallel", "over": [], "steps": [` + steps("a") + `]}]}`:                                                 {"steps[1].steps[0].id"},
	`{"steps": [{"id": "a", "type": "branch", "cases": [{"when": true, "steps": [` + steps("x") + `]}, {"when": true, "steps": [` + steps("x") + `]}]}]}`:         {"steps[0].cases[1].steps[0].id"},
	`{"steps": [{"id": "a", "type": "transform", "value": "${steps.b.output}"}, {"id": "b", "type": "transform", "value": "${steps.b.output}"}]}`:                 {"steps[0].value", "steps[1].value"},
	`{"steps": [{"id": "a", "type": "transform", "value": ["${steps.nothing.output + steps.none.x}"]}]}`:                                                          {"steps[0].value", "steps[0].value"},
	`{"steps": [{"id": "a", "type": "parallel", "over": "${[item]}", "steps": [` + steps("x") + `], "output": "${steps.x}"}], "output": "${steps.x.output}"}`:     {"output", "steps[0].over"},
	`{"steps": [{"id": "a", "type": "branch", "cases": [{"when": "${steps.x.output}", "steps": [` + steps("x") + `]}, {"when": true, "output": "${steps.x}"}]}]}`: {"steps[0].cases[0].when", "steps[0].cases[1].output"},
	`{"steps": [{"id": "a", "type": "transform", "value": "${index}"}], "output": "${item}"}`:                                                                     {"output", "steps[0].value"},
	`{"steps": [], "output": {"a": ["${", 1]}}`:                                                                                                                   {"output.a[0]"},
	`{"steps": [], "output": "${env.HOME}"}`:                                                                                                                      {"output"},
	`{"steps": [], "limits": {"timeout": "25h", "budget": "-1"}}`:                                                                                                 {"limits.budget", "limits.timeout"},
	`{"steps": [], "limits": {"timeout": "five minutes"}}`:                                                                                                        {"limits.timeout"},
	`{"steps": [], "trace": {"redact": ["input..a", "item.b"]}}`:                                                                                                  {"trace.redact[0]", "trace.redact[1]"},
	`{"steps": [], "price": {"per_run": "1e3"}}`:                                                                                                                  {"price.per_run"},
	`{"steps": [], "price": {"per_run": 1e3}}`:                                                                                                                    {"price.per_run"},
	`{"steps": [], "price": {"per_run": "0.0000001"}}`:                                                                                                            {"price.per_run"},
	`{"steps": [], "price": {"per_run": -0.5}}`:                                                                                                                   {"price.per_run"},
	`{"steps": [], "price": {"per_run": true}}`:                                                                                                                   {"price.per_run"},
	`{"steps": [], "price": {"credit_type": " main"}}`:                                                                                                            {"price.credit_type"},
	`{"steps": [], "price": {"credit_type": "a\u0000"}}`:                                                                                                          {"price.credit_type"},
	`{"steps": [], "price": {"per_step": {"a": "1", "b": "x"}}}`:                                                                                                  {"price.per_step.a", "price.per_step.b", "price.per_step.b"},
	`{"steps": [], "price": {"per_step": ["1"]}}`:                                                                                                                 {"price.per_step"},
	`{"steps": [], "price": {"tokens": {"*": {"input": "1"}}}}`:                                                                                                   {"limits.budget"},
	`{"steps": [], "price": {"tokens": {"*": {"inputs": "1"}}}}`:                                                                                                  {"price.tokens.*.inputs"},
	`{"steps": [], "price": {"per_run": "999999999999.999999"}, "limits": {"budget": "0.000001"}}`:                                                                {"price"},
	`{"steps": [{"id": "p", "type": "parallel", "over": [], "max_items": 1000, "steps": [{"id": "q", "type": "parallel", "over": [], "max_items": 1000, "steps": [` + steps("x") + `]}]}],
		"price": {"per_step": {"x": "999999999999"}}}`: {"price"},
	`{"steps": [], "input": {"type": "objekt"}}`:                                     {"input.type"},
	`{"steps": [], "input": {"properties": {"a": {"minimum": "1"}}}}`:                {"input.properties.a.minimum"},
	`{"steps": [], "input": {"$ref": "https://example.com/schema.json"}}`:            {"input.$ref"},
	`{"steps": [], "input": {"properties": {"a": {"$ref": "file:///etc/passwd"}}}}`:  {"input.properties.a.$ref"},
	`{"steps": [], "input": {"$ref": "other.json"}}`:                                 {"input.$ref"},
	`{"steps": [], "input": {"$ref": "#/$defs/none"}}`:                               {"input"},
	`{"steps": [], "input": {"$schema": "http://json-schema.org/draft-07/schema#"}}`: {"input.$schema"},
	`{"steps": [], "input": {"$dynamicRef": "#a"}}`:                                  {"input.$dynamicRef"},
	`{"steps": [], "input": {"pattern": "(?=a)"}}`:                                   {"input.pattern"},
	`{"steps": [], "input": {"pattern": "((x{100}){100}){100}"}}`:                    {"input.pattern"},
	`{"steps": [], "input": {"patternProperties": {"(": {}}}}`:                       {"input.patternProperties.("},
	`{"steps": [], "output": [` + strings.Repeat(`"${1}",`, 2000) + `"${1}"]}`:       {"output[2000]"},
	`{"steps": [{"id": "a", "type": "transform", "value": [` + strings.Repeat(`"${1}",`, 1500) + `1]}], "output": [` + strings.Repeat(`"${1}",`, 1500) + `1]}`: {""},
	`{"steps": [], "output": 1e400}`: {""},
	nested(5):                        {"steps[0].cases[0].steps[0].cases[0].steps[0].cases[0].steps[0].cases[0].steps[0].cases[0].steps"},
	`{"steps": [], "output": ` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`: {"output" + strings.Repeat("[0]", 63)},
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for source, want := range refused {
		_, err := compile(t, source)
		if err == nil {
			t.Errorf("%.300s: no error", source)
			continue
		}
		var paths []string
		for _, one := range issues(t, err) {
			paths = append(paths, one.Path)
			if one.Message == "" || len(one.Message) > 400 {
				t.Errorf("%.300s: the message is %q", source, one.Message)
			}
		}
		if diff := cmp.Diff(paths, want); diff != "" {
			t.Errorf("%.300s: %s\n%v", source, diff, err)
		}
	}
}

func TestLimitsOfSize(t *testing.T) {
	t.Parallel()
	if _, err := compile(t, nested(4)); err != nil {
		t.Errorf("4 levels are allowed: %v", err)
	}
	ids := make([]string, 201)
	for i := range ids {
		ids[i] = fmt.Sprintf("s%d", i)
	}
	if _, err := compile(t, `{"steps": [`+steps(ids[:200]...)+`]}`); err != nil {
		t.Errorf("200 steps are allowed: %v", err)
	}
	if _, err := compile(t, `{"steps": [`+steps(ids...)+`]}`); err == nil {
		t.Error("201 steps are not")
	}
	inner := `{"steps": [` + steps(ids[:100]...) + `, {"id": "p", "type": "parallel", "over": [], "steps": [` + steps(ids[100:200]...) + `]}]}`
	_, err := compile(t, inner)
	if got := issues(t, err); len(got) != 1 || got[0].Path != "steps[100].steps[99]" {
		t.Errorf("inner steps count as well, and it is said once: %v", got)
	}
	if _, err := compile(t, `{"steps": [], "output": "`+strings.Repeat("x", 256<<10)+`"}`); err == nil {
		t.Error("more than 256 KiB are not allowed")
	}
}

// TestPatternsAreBoundedTogether: many patterns that are fine by themselves take
// more memory than a definition should.
func TestPatternsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	patterns := func(n int) string {
		return `{"steps": [], "input": {"allOf": [` + strings.Repeat(`{"pattern": "(ab){900}(cd){900}"},`, n) + `{}]}}`
	}
	if _, err := compile(t, patterns(5)); err != nil {
		t.Error(err)
	}
	if _, err := compile(t, patterns(60)); err == nil || !strings.HasPrefix(issues(t, err)[0].Path, "input") {
		t.Errorf("got %v", err)
	}
}

func TestTheSchemaDescribesWhatIsAccepted(t *testing.T) {
	t.Parallel()
	value, err := template.Decode(flow.Schema(types))
	if err != nil {
		t.Fatal(err)
	}
	defs := value.(map[string]any)["$defs"].(map[string]any)
	for _, one := range types {
		own := defs["step_"+one.Name()].(map[string]any)
		_, quiet := one.(step.Quiet)
		if own["additionalProperties"] != false || (own["properties"].(map[string]any)["on_interrupt"] == nil) != quiet {
			t.Errorf("%s: %v", one.Name(), own)
		}
	}
}
