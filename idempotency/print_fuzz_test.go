package idempotency_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/idempotency"
)

// FuzzNormalJSON: every body has one print, which survives its encoding, and
// two readers who respell a body do not change it.
func FuzzNormalJSON(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"version":"1","ts":"2026-05-01T10:00:00.5+02:00","environment":null}`, `{"n":[1.50,-0,1e400,"\ud83d\ude00"]}`,
		`{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `[1]`, ``, `{"a":1}x`, `{"body":"raw 1"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p := markers.Print(&idempotency.Request{Body: body})
		var decoded idempotency.Print
		if err := decoded.UnmarshalBinary(encode(t, p)); err != nil {
			t.Fatal(err)
		}
		if got := p.Differs(decoded); got != nil {
			t.Fatalf("the encoding changed %q", got)
		}
		text := jsontext.Value(body)
		if text.Kind() != '{' || !text.IsValid() || len(body) > 1000 || bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > 64 {
			return // it is compared byte by byte, or may be
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, body, " ", "\t"); err != nil {
			return
		}
		if got := p.Differs(printOf(markers, spaced.String())); got != nil {
			t.Fatalf("white space changed %q", got)
		}
	})
}

// FuzzPrintUnmarshalBinary: what is decoded was encoded.
func FuzzPrintUnmarshalBinary(f *testing.F) {
	f.Add([]byte{})
	f.Add(encode(f, printOf(markers, `{"a":1,"b":2}`)))
	f.Add(encode(f, printOf(raw, `{"a":1}`, idempotency.Fact{Name: "method", Value: "topup"})))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p idempotency.Print
		if err := p.UnmarshalBinary(b); err != nil {
			if !p.IsZero() {
				t.Fatal("half of a damaged print was taken")
			}
			return
		}
		if again := encode(t, p); !bytes.Equal(again, b) {
			t.Fatalf("%x is read as %x", b, again)
		}
	})
}

// value is a JSON value: nil, bool, string, number, []value or map[string]value.
type value any

// number is units × 10^-scale.
type number struct{ units, scale int }

func drawValue(t *rapid.T, depth int) value {
	most := 5
	if depth == 0 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.String().Draw(t, "string")
	case 3:
		return number{rapid.IntRange(-2000, 2000).Draw(t, "units"), rapid.IntRange(-3, 3).Draw(t, "scale")}
	case 4:
		var list []value
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	default:
		return drawObject(t, depth-1)
	}
}

func drawObject(t *rapid.T, depth int) map[string]value {
	object := map[string]value{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		object[rapid.String().Draw(t, "name")] = drawValue(t, depth)
	}
	return object
}

// spell writes a value in one of its many spellings.
func spell(t *rapid.T, b *strings.Builder, v value) {
	blank := func() { b.WriteString(rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "blank")) }
	blank()
	defer blank()
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		spellString(t, b, v)
	case number:
		spellNumber(t, b, v)
	case []value:
		b.WriteByte('[')
		for i, one := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			spell(t, b, one)
		}
		b.WriteByte(']')
	case map[string]value:
		b.WriteByte('{')
		names := slices.Sorted(maps.Keys(v))
		for i, name := range rapid.Permutation(names).Draw(t, "order") {
			if i > 0 {
				b.WriteByte(',')
			}
			blank()
			spellString(t, b, name)
			blank()
			b.WriteByte(':')
			spell(t, b, v[name])
		}
		b.WriteByte('}')
	}
}

func spellString(t *rapid.T, b *strings.Builder, s string) {
	quoted, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "escape") {
		quoted = []byte(strconv.QuoteToASCII(s))
		var check string
		if json.Unmarshal(quoted, &check) != nil || check != s { // Go's \x and \U are not JSON's
			quoted, err = json.Marshal(s)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Write(quoted)
}

func spellNumber(t *rapid.T, b *strings.Builder, n number) {
	zeros := rapid.IntRange(0, 3).Draw(t, "zeros")
	sign, units := "", n.units
	if units < 0 {
		sign, units = "-", -units
	}
	digits := strconv.Itoa(units) + strings.Repeat("0", zeros)
	exponent := -n.scale - zeros
	if point := rapid.IntRange(0, len(digits)-1).Draw(t, "point"); point > 0 && units != 0 {
		exponent += point
		digits = digits[:len(digits)-point] + "." + digits[len(digits)-point:]
	} else if units == 0 {
		digits = "0"
	}
	b.WriteString(sign + digits + rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e") + strconv.Itoa(exponent))
}

func drawSpelling(t *rapid.T, v value) string {
	var b strings.Builder
	spell(t, &b, v)
	return b.String()
}

// canonical is a second, simple opinion on when two values are one.
func canonical(v value) string {
	switch v := v.(type) {
	case number:
		if v.units == 0 {
			return "0"
		}
		for v.units%10 == 0 {
			v.units, v.scale = v.units/10, v.scale-1
		}
		return strconv.Itoa(v.units) + "/" + strconv.Itoa(v.scale)
	case string:
		return strconv.Quote(v)
	case []value:
		var out strings.Builder
		out.WriteString("[")
		for _, one := range v {
			out.WriteString(canonical(one) + ",")
		}
		return out.String() + "]"
	case map[string]value:
		var out strings.Builder
		out.WriteString("{")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out.WriteString(strconv.Quote(name) + ":" + canonical(v[name]) + ",")
		}
		return out.String() + "}"
	case bool:
		return strconv.FormatBool(v)
	default:
		return "null"
	}
}

// compact drops top-level nulls, which stand for absent members.
func compact(object map[string]value) map[string]value {
	kept := maps.Clone(object)
	maps.DeleteFunc(kept, func(_ string, v value) bool { return v == nil })
	return kept
}

// TestOneValueHasOnePrint: two spellings of a value have one print, and two
// values that differ have two; what differs is named.
func TestOneValueHasOnePrint(t *testing.T) {
	f := idempotency.NormalJSON()
	rapid.Check(t, func(t *rapid.T) {
		object := drawObject(t, 3)
		first := drawSpelling(t, object)
		if got := printOf(f, first).Differs(printOf(f, drawSpelling(t, object))); got != nil {
			t.Fatalf("%s: two spellings differ in %q", first, got)
		}
		other := maps.Clone(object)
		name := rapid.SampledFrom(append(slices.Sorted(maps.Keys(object)), "new")).Draw(t, "changed")
		other[name] = drawValue(t, 2)
		same := canonical(compact(object)) == canonical(compact(other))
		differs := printOf(f, first).Differs(printOf(f, drawSpelling(t, other)))
		if same != (differs == nil) || len(differs) > 1 {
			t.Fatalf("%s and %s: differs %q", canonical(object), canonical(other), differs)
		}
	})
}
