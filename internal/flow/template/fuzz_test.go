package template

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzCompileEval(f *testing.F) {
	for _, seed := range []string{
		"", "$", "${", "$${", "${}", "${input}", "${input.a[0]}", "${steps.a.b} x ${item}", "${let a = 1; a}", "${map(1..3, {# * 2})}",
		"${'\\'}", "${`}`}", "${/* } */1}", "${//\n1}", "${{}}", "${[}", "${#}", "${.a}", "${map(input, #index)}", "${input?.a}", "${input.a.()}",
		"${sum(1)}", "${max()}", "${groupBy(input.list, [1])}", "${groupBy(input.list, {})}", "${sortBy(input.list, #, 1)}", "${first(nil)}",
		"${take(input.list, -1)}", "${input.list[9223372036854775807]}", "${input.list[-9223372036854775807:9]}", "${flatten([[[1]]])}",
		"${reduce([], #acc)}", "${1 in 1}", "${nil in nil}", "${'a' in {'a': 1}}", "${get(input, nil)}", "${bitshl(1, 100)}", "${-input}", "${1 ?: 2}",
		"${input | get('a')}", "${::len('a')}", "${all([1], # == 1) ? 'a' : nil}", "${__proto__}", "${input.__proto__.x}", "\xff${input}", "${'\xff'}",
	} {
		f.Add(seed)
	}
	input, err := Decode([]byte(`{"a": [1, 2.5, null, "x"], "list": [3, 1, 2], "o": {"k": {"l": true}}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source string) {
		compiled, err := Compile(source)
		if err != nil {
			return
		}
		s := NewScope(input, nil)
		value, err := compiled.Eval(s)
		if err != nil {
			return
		}
		first, err := Encode(value)
		if err != nil {
			t.Fatalf("what it gives cannot be stored: %v", err)
		}
		again, err := compiled.Eval(s)
		if err != nil {
			t.Fatalf("fails the second time: %v", err)
		}
		if second, err := Encode(again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("gives %s, then %s, %v", first, second, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`null`, `1`, `1.0`, `1e2`, `-0`, `1e400`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `1152921504606846976.5`, `1e21`,
		`{"a":1,"a":2}`, `[[[]]]`, `{"a":{"b":[true,false,null,"\u0000\ud83d\ude00"]}}`, `"\ud800"`, `{} {}`, `[1,`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := Decode(data)
		if err != nil {
			return
		}
		encoded, err := Encode(value)
		if err != nil {
			t.Fatalf("%s: what was read cannot be written: %v", data, err)
		}
		again, err := Decode(encoded)
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if diff := cmp.Diff(value, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
