package template

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func decoded(t *testing.T, text string) any {
	t.Helper()
	value, err := Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func scope(t *testing.T) *Scope {
	t.Helper()
	s := NewScope(decoded(t, `{"n": 9007199254740993, "f": 1.5, "text": "h\u00e9llo", "list": [3, 1, 2], "none": null, "yes": true,
		"people": [{"name": "a", "age": 3}, {"name": "b", "age": 9}], "by": {"z": 1, "a": 2}}`), decoded(t, `{"user": "u-1"}`))
	s.SetStep("say", map[string]any{"text": "hi", "usage": map[string]any{"input": int64(3)}})
	s.SetStep("skipped", nil)
	inner := s.Inner()
	inner.Name("item", "it")
	inner.Name("index", int64(4))
	return inner
}

func TestEval(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`"plain"`:                                         `"plain"`,
		`"${input.n}"`:                                    `9007199254740993`,
		`"${input.n + 0}"`:                                `9007199254740993`,
		`"${input.n * 2 - input.n}"`:                      `9007199254740993`,
		`"n=${input.n}"`:                                  `"n=9007199254740993"`,
		`"${input.f}"`:                                    `1.5`,
		`"${input.f * 2}"`:                                `3`,
		`"${input.yes}"`:                                  `true`,
		`"a${input.none}b"`:                               `"ab"`,
		`"${input.none}"`:                                 `null`,
		`"${input.nowhere.at.all}"`:                       `null`,
		`"${input.list[7]}"`:                              `null`,
		`"${input.list[-1]}"`:                             `2`,
		`"${steps.skipped.text}"`:                         `null`,
		`"${steps.say.text ?? 'x'}"`:                      `"hi"`,
		`"${steps['say'].usage.input}"`:                   `3`,
		`"${steps.skipped?.text ?? 'x'}"`:                 `"x"`,
		`"${item}-${index}"`:                              `"it-4"`,
		`"${context.user}"`:                               `"u-1"`,
		`"$${input.n}"`:                                   `"${input.n}"`,
		`"$$${input.f}"`:                                  `"$${input.f}"`,
		`"$5 and ${1}"`:                                   `"$5 and 1"`,
		`"${'}'}${\"{\"}"`:                                `"}{"`,
		`"${ {a: {b: 1}} }"`:                              `{"a":{"b":1}}`,
		`"x ${input.by} ${input.list}"`:                   `"x {\"a\":2,\"z\":1} [3,1,2]"`,
		`{"a": ["${input.f}", 1], "b": "c"}`:              `{"a":[1.5,1],"b":"c"}`,
		`{"${input.f}": 1}`:                               `{"${input.f}":1}`,
		`"${input.text[0:2]}"`:                            `"hé"`,
		`"${input.text[1:]}"`:                             `"éllo"`,
		`"${keys(input.by)}"`:                             `["a","z"]`,
		`"${values(input.by)}"`:                           `[2,1]`,
		`"${toPairs(input.by)}"`:                          `[["a",2],["z",1]]`,
		`"${fromPairs([['x', 1]])}"`:                      `{"x":1}`,
		`"${sort(input.list)}"`:                           `[1,2,3]`,
		`"${uniq([1, 2, 1.0, 'a', 'a'])}"`:                `[1,2,"a"]`,
		`"${map(input.people, .name)}"`:                   `["a","b"]`,
		`"${filter(input.people, {#.age > 5})[0].name}"`:  `"b"`,
		`"${input.people | map(.age) | sum()}"`:           `12`,
		`"${groupBy(input.people, .age > 5)}"`:            `{"false":[{"age":3,"name":"a"}],"true":[{"age":9,"name":"b"}]}`,
		`"${groupBy(input.people, .age)[9][0].name}"`:     `null`,
		`"${groupBy(input.people, .name)['b'][0].age}"`:   `9`,
		`"${sortBy(input.people, .age, 'desc')[0].name}"`: `"b"`,
		`"${reduce(input.list, #acc + #, 0)}"`:            `6`,
		`"${1 in input.list and 'z' in input.by}"`:        `true`,
		`"${let x = input.f; x + x}"`:                     `3`,
		`"${if input.yes { 'y' } else { 'n' }}"`:          `"y"`,
		`"${toJSON(input.by)}"`:                           `"{\"a\":2,\"z\":1}"`,
		`"${fromJSON('{\"n\": 9007199254740993}').n}"`:    `9007199254740993`,
		`"${string(input.list)}"`:                         `"[3,1,2]"`,
		`"${join(input.list, '-')}"`:                      `"3-1-2"`,
		`"${'abc' matches '^a'}"`:                         `true`,
		`"${7 / 2}"`:                                      `3.5`,
		`"${2 ** 62}"`:                                    `4611686018427387904`,
		`"${1e300 * 10}"`:                                 `1e+301`,
		`"${split('a,b', ',')}"`:                          `["a","b"]`,
		`"${// comment }\n 1}"`:                           `1`,
		`"${repeat('ab', 3) | replace('a', 'c')}"`:        `"cbcbcb"`,
	} {
		compiled, err := Compile(decoded(t, source))
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		value, err := compiled.Eval(scope(t))
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		encoded, err := Encode(value)
		if err != nil || string(encoded) != want {
			t.Errorf("%s: got %s, %v, want %s", source, encoded, err, want)
		}
		if diff := cmp.Diff(value, decoded(t, string(encoded))); diff != "" {
			t.Errorf("%s: another value after it was stored: %s", source, diff)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`${`:                                     "not closed",
		`a ${input.x`:                            "not closed",
		`${'}`:                                   "not closed",
		`${}`:                                    "empty",
		`${ }`:                                   "empty",
		`${inptu.x}`:                             "unknown name inptu",
		`${steps}`:                               "id of a step",
		`${steps[input.x].text}`:                 "id of a step",
		`${len(steps)}`:                          "id of a step",
		`${$env}`:                                "unknown name",
		`${$env[' run']}`:                        "unknown name",
		`${now()}`:                               "not available",
		`${date('2020-01-01')}`:                  "not available",
		`${timezone('UTC')}`:                     "not available",
		`${duration('1h')}`:                      "not available",
		`${exec('ls')}`:                          "no function exec",
		`${input.text.Foo()}`:                    "no function",
		`${1 +}`:                                 "column",
		`${b'x'}`:                                "no JSON",
		`${len}`:                                 "unknown name len",
		`${` + strings.Repeat("(", 9000) + `}`:   "at most",
		`${` + strings.Repeat("(", 4000) + `}`:   "",
		`${` + strings.Repeat("-", 4000) + `1}`:  "",
		`${1` + strings.Repeat("+1", 3000) + `}`: "",
		`${1e400}`:                               "float",
		`${99999999999999999999}`:                "integer",
	} {
		_, err := Compile(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %q", source, err, want)
		}
	}
	_, err := Compile(map[string]any{"a": []any{"x", "${"}})
	if err == nil || !strings.HasPrefix(err.Error(), "a[1]: ") {
		t.Errorf("got %v, want the path of the text", err)
	}
}

// TestExpressionsEnd runs what would take for ever or all memory: each must end
// with an error, and none may take the process along.
func TestExpressionsEnd(t *testing.T) {
	t.Parallel()
	// A twentieth of what is allowed ends as all of it does, only sooner.
	const cost = maxCost / 20
	numbers := make([]any, 20_000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	s := NewScope(map[string]any{"list": numbers, "text": strings.Repeat("x", 200_000)}, nil)
	var doubled strings.Builder
	doubled.WriteString("let a00 = input.text; ")
	var nested strings.Builder
	nested.WriteString("let a00 = [1, 2]; ")
	for i := range 40 {
		doubled.WriteString("let " + name(i+1) + " = " + name(i) + " + " + name(i) + "; ")
		nested.WriteString("let " + name(i+1) + " = [" + name(i) + ", " + name(i) + "]; ")
	}
	for _, source := range []string{
		`count(input.list, all(input.list, count(input.list, true) > 0))`,
		`all(input.list, count(input.list, all(input.list, # >= 0)) > 0)`,
		`map(1..900000, count(1..900000, true))`,
		`map(1..1000, 'a' matches 'x{1000}' + string(#))`, `map(1..20000, 'a' matches 'x{900}' )`, `'a' matches '((x{100}){100}){100}'`, `'a' matches repeat('x', 1001)`,
		`int(input.text)`, `float(input.text)`, `groupBy(input.list, [1])`, `fromJSON(input.text)`, `sort([1, 'a', nil])`, "1 /\n 0",
		`1..9000000000000000000`,
		`-9000000000000000000..9000000000000000000`,
		`repeat('abc', 1000000000)`,
		`repeat(repeat('abc', 1000000), 1000000)`,
		`replace(input.text, '', input.text)`,
		`join(input.list, input.text)`,
		`reduce(1..1000, #acc + #acc, input.text)`,
		`reduce(1..1000, concat(#acc, #acc), input.list)`,
		`reduce(1..100000, [#acc], 1)`,
		`map(input.list, input.text matches '(x+x+)+y' )`,
		`map(input.list, input.text contains 'y')`,
		`map(input.list, # in input.list)`,
		`map(input.list, input.list == input.list)`,
		`map(input.list, uniq(input.list))`,
		`map(input.list, toJSON(input.list))`,
		`map(input.list, input.text)`,
		doubled.String() + name(40), nested.String() + name(40), nested.String() + "toJSON(" + name(40) + ")", nested.String() + name(40) + " == " + name(40),
		`9007199254740993 * 9007199254740993`, `9223372036854775807 + 1`, `-9223372036854775807 - 2`, `2.0 ** 5000`, `0 / 0`, `1 / 0`, `1 % 0`,
		`input.text.member`, `input.list['a']`, `1 + 'a'`, `not 1`, `input.nothing ? 1 : 2`, `fromJSON('{')`, `'a' matches '('`, `fromBase64('/w==')`,
	} {
		compiled, err := Compile("${" + source + "}")
		if err != nil {
			if !strings.Contains(source, "not 1") && !strings.Contains(source, "1 + 'a'") && !strings.Contains(source, "'('") {
				t.Errorf("%.60s: refused when compiled: %v", source, err)
			}
			continue
		}

		value, err := compiled.eval(&run{scope: s, left: cost})
		if err == nil {
			t.Errorf("%.60s: no error, got %.60v", source, value)
		} else if strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 || strings.Contains(err.Error(), "interface") {
			t.Errorf("%.60s: the message is not plain: %v", source, err)
		}
	}
}

func name(i int) string { return "a" + string(rune('0'+i/10)) + string(rune('0'+i%10)) }

func TestEvalLeavesTheScopeAlone(t *testing.T) {
	t.Parallel()
	s := NewScope(decoded(t, `{"list": [3, 1, 2], "o": {"a": [1]}}`), nil)
	for _, source := range []string{"sort(input.list)", "reverse(input.list)", "concat(input.list, [9])", "input.o", "input.list", "uniq(input.list)"} {
		compiled, err := Compile("${" + source + "}")
		if err != nil {
			t.Fatal(err)
		}
		value, err := compiled.Eval(s)
		if err != nil {
			t.Fatal(err)
		}
		switch v := value.(type) {
		case []any:
			v[0] = "changed"
		case map[string]any:
			v["a"].([]any)[0] = "changed"
		}
	}
	if diff := cmp.Diff(s.find("input"), decoded(t, `{"list": [3, 1, 2], "o": {"a": [1]}}`)); diff != "" {
		t.Errorf("the scope has changed: %s", diff)
	}
}

func TestInnerScopeIsNotSeenOutside(t *testing.T) {
	t.Parallel()
	outer := NewScope(nil, nil)
	outer.SetStep("a", map[string]any{"output": "outer"})
	inner := outer.Inner()
	inner.SetStep("a", nil)
	inner.SetStep("b", map[string]any{"output": "inner"})
	inner.Name("item", 1)
	if outer.step("b") != nil || outer.find("item") != nil || inner.step("a") != nil {
		t.Error("a scope sees what was added within, or a null is not seen")
	}
	if outer.step("a") == nil {
		t.Error("the outer step was changed from within")
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	compiled, err := Compile(map[string]any{"x": "${steps.b.text + steps['a'].text} ${item}", "y": []any{"${input.z}"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compiled.Steps(), []string{"a", "b"}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(compiled.Names(), []string{"input", "item"}); diff != "" {
		t.Error(diff)
	}
	if _, ok := compiled.Literal(); ok {
		t.Error("a template with expressions is no literal")
	}
	plain, err := Compile(map[string]any{"x": "$${a}"})
	if err != nil {
		t.Fatal(err)
	}
	value, ok := plain.Literal()
	if diff := cmp.Diff(value, any(map[string]any{"x": "${a}"})); diff != "" || !ok {
		t.Error(diff)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	s := NewScope(map[string]any{"text": strings.Repeat("\x01", 200_000)}, nil)
	for _, value := range []any{"${input.text}", []any{"${input.text}"}, "a${repeat('x', 2000000)}", "${repeat('x', 1100000)}"} {
		compiled, err := Compile(value)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := compiled.Eval(s); !errors.Is(err, errSize) {
			t.Errorf("%v: got %v, want %v", value, err, errSize)
		}
	}
}
