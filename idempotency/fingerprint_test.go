package idempotency_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/idempotency"
)

func printOf(f idempotency.Fingerprint, body string, facts ...idempotency.Fact) idempotency.Print {
	return f.Print(&idempotency.Request{Body: []byte(body), Facts: facts})
}

var (
	markers   = idempotency.ReleaseMarker().Compare
	raw       = idempotency.RawBytes()
	movements = idempotency.CreditMovement(0).Retention.Tombstone
)

// comparison says which parts of two bodies differ; none if they are one.
type comparison struct {
	name, a, b string
	differs    []string
}

func checkComparisons(t *testing.T, f idempotency.Fingerprint, tests []comparison) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := printOf(f, tt.a), printOf(f, tt.b)
			for _, got := range [][]string{a.Differs(b), b.Differs(a)} {
				if diff := cmp.Diff(tt.differs, got); diff != "" {
					t.Fatalf("%s\n%s\n(-want +got):\n%s", tt.a, tt.b, diff)
				}
			}
		})
	}
}

func TestBodiesComparedByValue(t *testing.T) {
	n := []string{"n"}
	checkComparisons(t, markers, []comparison{
		{"equal", `{"version":"1"}`, `{"version":"1"}`, nil},
		{"order of members", `{"n":1,"version":"1"}`, `{"version":"1","n":1}`, nil},
		{"order of nested members", `{"n":{"a":1,"b":[{"c":1,"d":2}]}}`, `{"n":{"b":[{"d":2,"c":1}],"a":1}}`, nil},
		{"order of an array", `{"n":[1,2]}`, `{"n":[2,1]}`, n},
		{"white space", `{"n":[1,2]}`, " {\r\n\t\"n\" : [ 1 , 2 ] } \n", nil},
		{"1.50 and 15e-1", `{"n":1.50}`, `{"n":15e-1}`, nil},
		{"1.50 and 150E-2", `{"n":1.50}`, `{"n":150E-2}`, nil},
		{"1e2 and 100", `{"n":1e+2}`, `{"n":100}`, nil},
		{"1.5 and -1.5", `{"n":1.5}`, `{"n":-1.5}`, n},
		{"0 and -0", `{"n":0}`, `{"n":-0}`, nil},
		{"0 and -0.00e-7", `{"n":0}`, `{"n":-0.00e-7}`, nil},
		{"0 and null", `{"n":0}`, `{"n":null}`, n},
		{"huge exponents", `{"n":1e99999999999999999999}`, `{"n":10e99999999999999999998}`, nil},
		{"huge exponents that differ", `{"n":1e99999999999999999999}`, `{"n":1e99999999999999999998}`, n},
		{"leading zeros of an exponent", `{"n":1e0007}`, `{"n":10000000}`, nil},
		{"integers that one double stands for", `{"n":10000000000000000001}`, `{"n":10000000000000000002}`, n},
		{"fractions that one double stands for", `{"n":0.10000000000000000001}`, `{"n":0.1}`, n},
		{"number and string", `{"n":1}`, `{"n":"1"}`, n},
		{"string escapes", `{"n":"\u0061\/\ud83d\ude00\n"}`, "{\"n\":\"a/\U0001F600\\u000a\"}", nil},
		{"escapes in names", `{"\u006e":1}`, `{"n":1}`, nil},
		{"case of strings", `{"n":"a"}`, `{"n":"A"}`, n},
		{"composed and decomposed", "{\"n\":\"\u00e9\"}", "{\"n\":\"e\u0301\"}", n},
		{"null and absent", `{"version":"1","n":null}`, `{"version":"1"}`, nil},
		{"nested null and absent", `{"n":{"a":null}}`, `{"n":{}}`, n},
		{"empty array and absent", `{"n":[]}`, `{}`, n},
		{"true and false", `{"n":true}`, `{"n":false}`, n},
		{"several members", `{"version":"1","a":1,"b":2,"c":3}`, `{"version":"1","a":2,"c":3,"d":4}`, []string{"a", "b", "d"}},
		{"a member named body and a body", `{"body":1}`, `1e0`, []string{"body", "environment"}},
		{"a member named body and a body that says it is", `{"body":"raw 1"}`, `raw 1`, []string{"body", "environment"}},
	})
}

func TestMembersWithRules(t *testing.T) {
	environment, ts := []string{"environment"}, []string{"ts"}
	checkComparisons(t, markers, []comparison{
		{"default and absent", `{"environment":"production"}`, `{}`, nil},
		{"default and null", `{"environment":"production"}`, `{"environment":null}`, nil},
		{"another and absent", `{"environment":"staging"}`, `{}`, environment},
		{"empty is not the default", `{"environment":""}`, `{}`, environment},
		{"offset", `{"ts":"2026-05-01T10:00:00Z"}`, `{"ts":"2026-05-01T12:00:00+02:00"}`, nil},
		{"+00:00 for Z", `{"ts":"2026-05-01T10:00:00Z"}`, `{"ts":"2026-05-01T10:00:00+00:00"}`, nil},
		{"-00:00 for Z", `{"ts":"2026-05-01T10:00:00Z"}`, `{"ts":"2026-05-01T10:00:00-00:00"}`, nil},
		{"zeros of the fraction", `{"ts":"2026-05-01T10:00:00.500Z"}`, `{"ts":"2026-05-01T10:00:00.5Z"}`, nil},
		{"no fraction", `{"ts":"2026-05-01T10:00:00Z"}`, `{"ts":"2026-05-01T10:00:00.000000000000Z"}`, nil},
		{"over midnight and the year", `{"ts":"2025-12-31T23:30:00-01:00"}`, `{"ts":"2026-01-01T00:30:00Z"}`, nil},
		{"a second", `{"ts":"2026-05-01T10:00:00Z"}`, `{"ts":"2026-05-01T10:00:01Z"}`, ts},
		{"the ninth digit", `{"ts":"2026-05-01T10:00:00.000000001Z"}`, `{"ts":"2026-05-01T10:00:00Z"}`, ts},
		{"the tenth digit", `{"ts":"2026-05-01T10:00:00.0000000001Z"}`, `{"ts":"2026-05-01T10:00:00.0000000002Z"}`, ts},
		{"the tenth digit is a zero", `{"ts":"2026-05-01T10:00:00.1234567890Z"}`, `{"ts":"2026-05-01T10:00:00.123456789Z"}`, nil},
		{"the tenth digit after a comma", `{"ts":"2026-05-01T10:00:00,0000000001Z"}`, `{"ts":"2026-05-01T10:00:00,0000000002Z"}`, ts},
		{"same clock, other offset", `{"ts":"2026-05-01T10:00:00Z"}`, `{"ts":"2026-05-01T10:00:00+02:00"}`, ts},
		{"absent", `{"ts":"2026-05-01T10:00:00Z"}`, `{}`, ts},
		{"no time, by its text", `{"ts":"yesterday"}`, `{"ts":"yesterday "}`, ts},
		{"an impossible time, by its text", `{"ts":"2026-02-30T10:00:00Z"}`, `{"ts":"2026-02-30T10:00:00+00:00"}`, ts},
		{"a number is no time", `{"ts":1}`, `{"ts":1.0}`, nil},
		{"a text that looks like the normal form", `{"ts":"time 2026-05-01 10:00:00"}`, `{"ts":"2026-05-01T10:00:00Z"}`, ts},
		{"elsewhere an offset matters", `{"at":"2026-05-01T10:00:00Z"}`, `{"at":"2026-05-01T10:00:00+00:00"}`, []string{"at"}},
	})
}

// What is no proper JSON object is compared byte by byte, and its spelling is
// all that it has.
func TestBodiesThatAreNotRead(t *testing.T) {
	body := []string{"body"}
	deep := func(levels int, inner string) string {
		return `{"n":` + strings.Repeat("[", levels-1) + inner + strings.Repeat("]", levels-1) + `}`
	}
	long := strings.Repeat("7", 1001)
	checkComparisons(t, markers, []comparison{
		{"level 64 is read", deep(64, ""), deep(64, " "), nil},
		{"level 65 is not", deep(65, ""), deep(65, " "), body},
		{"a repeated name", `{"a":1,"a":1}`, `{"a":1, "a":1}`, body},
		{"a repeated name in an escape", `{"a":1,"\u0061":1}`, `{"a":1, "\u0061":1}`, body},
		{"a repeated nested name", `{"n":{"a":1,"a":1}}`, `{"n":{"a":1, "a":1}}`, body},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "{\"a\": \"\xff\"}", body},
		{"invalid UTF-8 is not U+FFFD", "{\"a\":\"\xff\"}", "{\"a\":\"\ufffd\"}", []string{"a", "body", "environment"}},
		{"half a surrogate pair", `{"a":"\ud83d"}`, `{"a": "\ud83d"}`, body},
		{"something after it", `{"a":1} 1`, `{"a":1}  1`, body},
		{"a second object after it", `{"a":1}{}`, `{"a":1} {}`, body},
		{"an array", `[1]`, `[ 1]`, body},
		{"empty", ``, ` `, body},
		{"unfinished", `{"a":1`, `{"a":1 `, body},
		{"a long name", `{"` + text(1025) + `":1}`, `{"` + text(1025) + `": 1}`, body},
		{"a long exponent", `{"n":1e` + long + `}`, `{"n": 1e` + long + `}`, body},
		{"equal nonsense", `{"a":`, `{"a":`, nil},
	})
}

func TestBodiesComparedByBytes(t *testing.T) {
	body := []string{"body"}
	checkComparisons(t, raw, []comparison{
		{"equal", `{"a":1,"b":2}`, `{"a":1,"b":2}`, nil},
		{"order of members", `{"a":1,"b":2}`, `{"b":2,"a":1}`, body},
		{"white space", `{"a":1}`, `{"a": 1}`, body},
		{"numbers", `{"a":1.0}`, `{"a":1}`, body},
		{"both empty", ``, ``, nil},
		{"one empty", ``, `{}`, body},
	})
}

func TestMovementsComparedByTheirFacts(t *testing.T) {
	amount := []string{"amount"}
	checkComparisons(t, movements, []comparison{
		{"text and number", `{"credit_type":"main","amount":"10.50"}`, `{"amount":10.5,"credit_type":"main","reason":"x"}`, nil},
		{"an exponent", `{"amount":"105e-1"}`, `{"amount":"10.5"}`, nil},
		{"sign", `{"amount":"-5"}`, `{"amount":"5"}`, amount},
		{"value", `{"amount":"5"}`, `{"amount":"6"}`, amount},
		{"credit type", `{"credit_type":"main","amount":"5"}`, `{"credit_type":"bonus","amount":"5"}`, []string{"credit_type"}},
		{"a text that is no number", `{"amount":"5 "}`, `{"amount":"5"}`, amount},
		{"a plus sign is not JSON's", `{"amount":"+5"}`, `{"amount":"5"}`, amount},
		{"a text that looks like the normal form", `{"amount":"decimal 5e0"}`, `{"amount":"5"}`, amount},
	})
}

func TestFactsAreCompared(t *testing.T) {
	fact := func(name, value string) idempotency.Fact { return idempotency.Fact{Name: name, Value: value} }
	for name, f := range map[string]idempotency.Fingerprint{"raw": raw, "normal": markers, "chosen": movements} {
		t.Run(name, func(t *testing.T) {
			one := printOf(f, `{"amount":1}`, fact("method", "topup"), fact("customer", "ada"))
			if got := one.Differs(printOf(f, `{"amount":1}`, fact("customer", "ada"), fact("method", "topup"))); got != nil {
				t.Errorf("the order of facts matters: %q", got)
			}
			if got := one.Differs(printOf(f, `{"amount":1}`, fact("method", "charge"), fact("customer", "eve"))); !slices.Equal(got, []string{"customer", "method"}) {
				t.Errorf("got %q", got)
			}
			if got := one.Differs(printOf(f, `{"amount":1}`, fact("method", "topup"))); !slices.Equal(got, []string{"customer"}) {
				t.Errorf("a fact that is missing: %q", got)
			}
			if got := one.Differs(printOf(f, `{"amount":1}`, fact("customer", "topup"), fact("method", "ada"))); len(got) != 2 {
				t.Errorf("values of two facts exchanged: %q", got)
			}
		})
	}
	// A member is not a fact of the same name and value.
	a := printOf(markers, `{"customer":"ada"}`)
	b := printOf(markers, `{}`, fact("customer", `"ada"`))
	if got := a.Differs(b); !slices.Equal(got, []string{"customer"}) {
		t.Errorf("a member passes for a fact: %q", got)
	}
}

func TestDiffersIsBounded(t *testing.T) {
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, `,"n%02d":1`, i)
	}
	body := `{"a":1,"` + text(65) + `":1,"` + text(66) + `":1` + many.String() + `}`
	got := printOf(markers, body).Differs(printOf(markers, `{}`))
	if len(got) != 20 || got[0] != "a" || got[1] != "…" || got[2] != "n00" || got[19] != "n17" {
		t.Errorf("got %q", got)
	}
	if got := printOf(markers, `{"`+text(64)+`":1}`).Differs(printOf(markers, `{}`)); got[0] != text(64) {
		t.Errorf("a name of 64 bytes is shown as %q", got)
	}
}

// TestAFieldsDefault: a default is a value, however it is spelt.
func TestAFieldsDefault(t *testing.T) {
	f := idempotency.ChosenFields(idempotency.Field{Name: "n", Default: ` 1.50`}, idempotency.Field{Name: "o", Default: `{"b":1,"a":2}`})
	if got := printOf(f, `{"n":15e-1,"o":{"a":2,"b":1}}`).Differs(printOf(f, `{}`)); got != nil {
		t.Errorf("got %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a default that is no JSON was taken")
		}
	}()
	idempotency.NormalJSON(idempotency.Field{Name: "n", Default: "production"})
}
