package flow_test

import (
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/flow"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"b: 1\na: [x, 'y', \"z\"]\n":                  `{"a":["x","y","z"],"b":1}`,
		"a: 2024-01-01\n":                             `{"a":"2024-01-01"}`,
		"a: 2001-12-14t21:59:43.10-05:00\n":           `{"a":"2001-12-14t21:59:43.10-05:00"}`,
		"a: 010\nb: 0o10\nc: 0x1F\nd: 1_000\ne: +1\n": `{"a":"010","b":"0o10","c":"0x1F","d":"1_000","e":"+1"}`,
		"a: .5\nb: 1.\nc: .inf\nd: .nan\ne: -\n":      "",
		"a: .5\nb: 1.\nc: .inf\nd: .nan\n":            `{"a":".5","b":"1.","c":".inf","d":".nan"}`,
		"a: 190:20:30\nb: 1e3\nc: -0.50\nd: 0\n":      `{"a":"190:20:30","b":1e3,"c":-0.50,"d":0}`,
		"a: yes\nb: no\nc: on\nd: y\n":                `{"a":"yes","b":"no","c":"on","d":"y"}`,
		"a: true\nb: False\nc: ~\nd:\ne: null\n":      `{"a":true,"b":false,"c":null,"d":null,"e":null}`,
		"a: 'true'\nb: \"1\"\nc: 'null'\nd: ''\n":     `{"a":"true","b":"1","c":"null","d":""}`,
		"a: |\n  1\n":                   `{"a":"1\n"}`,
		"a: >-\n  x\n  y\n":             `{"a":"x y"}`,
		"on: 1\nyes: 2\n":               `{"on":1,"yes":2}`,
		"'1': a\n":                      `{"1":"a"}`,
		"a: \"${input.x}\" # comment\n": `{"a":"${input.x}"}`,
		"a: 123456789012.123456\n":      `{"a":123456789012.123456}`,
		"{a: [1, {b: c}]}":              `{"a":[1,{"b":"c"}]}`,
		"__proto__: 1\n":                `{"__proto__":1}`,
		"- a\n- b\n":                    `["a","b"]`,
		"plain":                         `"plain"`,
	} {
		got, err := flow.Canonical([]byte(source), flow.YAML)
		if want == "" {
			if err == nil {
				t.Errorf("%q: got %s, want an error", source, got)
			}
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v, want %s", source, got, err, want)
		}
	}
	got, err := flow.Canonical([]byte(" {\"b\": 1.50, \"a\": {\"d\": \"\\u0041\", \"c\": 12345678901234567890}} "), flow.JSON)
	if want := `{"a":{"c":12345678901234567890,"d":"A"},"b":1.50}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		before, name := string(rune('a'+i)), string(rune('b'+i))
		bomb.WriteString(name + ": &" + name + " [*" + before + ",*" + before + ",*" + before + ",*" + before + "]\n")
	}
	for source, path := range map[string]string{
		"":                                   "",
		"# nothing\n":                        "",
		"a: 1\n---\nb: 2\n":                  "",
		"a: 1\na: 2\n":                       "a",
		"x:\n  - a: 1\n    'a': 2\n":         "x[0].a",
		bomb.String():                        "a",
		"a: &x 1\n":                          "a",
		"a: 1\nb: *a\n":                      "",
		"<<: {a: 1}\n":                       "",
		"a: !!str 1\n":                       "a",
		"a: !!binary aGk=\n":                 "a",
		"a: !custom {b: 1}\n":                "a",
		"a: !!python/object/apply:os.exit 1": "a",
		"1: a\n":                             "",
		"true: a\n":                          "",
		"null: a\n":                          "",
		"? [a, b]\n: c\n":                    "",
		"? {a: b}\n: c\n":                    "",
		"a: [1\n":                            "",
		"\ta: 1\n":                           "",
		"a: \"\\ud800\"\n":                   "",
		strings.Repeat("[", 5000):            "",
		strings.Repeat("- ", 200) + "a":      strings.Repeat("[0]", 65),
		"a: " + strings.Repeat("x", 257<<10): "",
	} {
		got, err := flow.Canonical([]byte(source), flow.YAML)
		if err == nil {
			t.Errorf("%.80q: got %.80s, want an error", source, got)
			continue
		}
		if list := issues(t, err); len(list) != 1 || list[0].Path != path || list[0].Message == "" {
			t.Errorf("%.80q: got %.300v, want it at %q", source, list, path)
		}
	}
	for source, path := range map[string]string{
		``: "", `{`: "", `{} {}`: "", `{"steps": [{"a": 1, "a": 2}]}`: "steps[0].a", `{"a": 01}`: "", `{'a': 1}`: "", "{\"a\": \"\xff\"}": "a", `nul`: "",
		`{"a": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "a" + strings.Repeat("[0]", 63),
		strings.Repeat("[", 20000): strings.Repeat("[0]", 67) + "…",
	} {
		_, err := flow.Canonical([]byte(source), flow.JSON)
		if err == nil {
			t.Errorf("%.80q: no error", source)
			continue
		}
		if list := issues(t, err); len(list) != 1 || list[0].Path != path {
			t.Errorf("%.80q: got %.300v, want it at %q", source, list, path)
		}
	}
	if _, err := flow.Canonical([]byte("{}"), "toml"); err == nil {
		t.Error("there is no format toml")
	}
}

func FuzzCanonicalYAML(f *testing.F) {
	for _, seed := range []string{
		"steps: []", "a: &a [*a]", "<<: *x", "a: |\n b", "? a\n: b", "{a: b", "- - - a", "a: 0o7", "a: 1e400", "---\n...\n", "%YAML 1.1\n---\na: b", "a: !!set {b}",
		"steps:\n  - {id: a, type: transform, value: \"${input.x}\"}\noutput: ${steps.a.output}\nprice: {per_run: .5}", "a: \x00", "\xfe\xff\x00a", "a: '", "!!map {}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		canonical, err := flow.Canonical(source, flow.YAML)
		if err != nil {
			issues(t, err)
			return
		}
		again, err := flow.Canonical(canonical, flow.JSON)
		if err != nil || string(again) != string(canonical) {
			t.Fatalf("%s becomes %s, %v", canonical, again, err)
		}
		if _, err := flow.Compile(types, canonical); err != nil {
			issues(t, err)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for source := range refused {
		f.Add([]byte(source))
	}
	f.Add([]byte(nested(4)))
	f.Add([]byte(`{"steps": [], "input": {"$ref": "#"}}`))
	f.Fuzz(func(t *testing.T, source []byte) {
		canonical, err := flow.Canonical(source, flow.JSON)
		if err != nil {
			issues(t, err)
			return
		}
		p, err := flow.Compile(types, canonical)
		if err != nil {
			issues(t, err)
			return
		}
		_ = p.CheckInput(map[string]any{"a": []any{int64(1), "b", nil}})
	})
}
