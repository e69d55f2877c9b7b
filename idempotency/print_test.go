package idempotency_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

func encode(t testing.TB, p idempotency.Print) []byte {
	t.Helper()
	b, err := p.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPrintsSurviveTheirEncoding(t *testing.T) {
	facts := []idempotency.Fact{{Name: "method", Value: "charge"}, {Name: "customer", Value: "ada"}, {Name: "", Value: ""}}
	for _, f := range []idempotency.Fingerprint{raw, markers, movements} {
		for _, body := range []string{``, `{}`, `{"amount":1,"credit_type":"main"}`, `not JSON`} {
			before := printOf(f, body, facts...)
			var after idempotency.Print
			if err := after.UnmarshalBinary(encode(t, before)); err != nil {
				t.Fatal(err)
			}
			if got := before.Differs(after); got != nil || !bytes.Equal(encode(t, before), encode(t, after)) {
				t.Errorf("%q came back with other %q", body, got)
			}
		}
	}
}

// A print of a request without any part is still one of a request; only "none"
// is no bytes.
func TestThePrintOfNothing(t *testing.T) {
	var none idempotency.Print
	if b := encode(t, none); len(b) != 0 || !none.IsZero() {
		t.Errorf("the zero print is %x", b)
	}
	empty := printOf(movements, `{}`)
	var decoded idempotency.Print
	if err := decoded.UnmarshalBinary(encode(t, empty)); err != nil || decoded.IsZero() {
		t.Errorf("the print of an empty request is lost: %v", err)
	}
	if err := decoded.UnmarshalBinary(nil); err != nil || !decoded.IsZero() {
		t.Errorf("no bytes are no print: %v", err)
	}
}

func TestDamagedPrintsAreRefused(t *testing.T) {
	whole := encode(t, printOf(markers, `{"a":1,"b":2}`, idempotency.Fact{Name: "path", Value: "/"}))
	var p idempotency.Print
	refused := func(name string, b []byte) {
		t.Helper()
		if err := p.UnmarshalBinary(b); err == nil {
			t.Errorf("%s: taken", name)
		} else if !p.IsZero() {
			t.Errorf("%s: half of it was taken", name)
		}
	}
	ends := map[int]bool{0: true, 33: true, 33 + 3 + 4 + 32: true}
	for n := range whole {
		cut := whole[:n]
		parts := (n - 33 - 39) % 36 // what is left is whole parts, which cannot be told
		if ends[n] || n > 72 && parts == 0 {
			continue
		}
		refused(fmt.Sprintf("cut to %d bytes", n), cut)
	}
	for _, version := range []byte{0, 2, 255} {
		other := slices.Clone(whole)
		other[0] = version
		refused("another version", other)
	}
	kind := slices.Clone(whole)
	kind[33] = 2
	refused("another kind of part", kind)
	name := slices.Clone(whole)
	name[34] = 255
	refused("a name longer than what follows", name)
	order := slices.Clone(whole)
	order[36] = 'z' // the fact's name: still in order, there is one
	if err := p.UnmarshalBinary(order); err != nil {
		t.Fatal(err)
	}
	order[33] = 0 // now a part, named after the others
	refused("parts out of order", order)
}

func TestANameThatCannotBeEncoded(t *testing.T) {
	if _, err := printOf(raw, ``, idempotency.Fact{Name: text(1 << 16)}).MarshalBinary(); err == nil {
		t.Error("a name of 65,536 bytes was encoded")
	}
	if _, err := printOf(raw, ``, idempotency.Fact{Name: text(1<<16 - 1)}).MarshalBinary(); err != nil {
		t.Error(err)
	}
}

// Stored prints outlive releases: if this test fails, keys that are in use will
// not be recognised any more. Add a version instead.
func TestGoldenPrints(t *testing.T) {
	facts := []idempotency.Fact{{Name: "method", Value: "topup"}, {Name: "customer", Value: "ada"}}
	tests := []struct {
		name  string
		f     idempotency.Fingerprint
		body  string
		facts []idempotency.Fact
		want  string
	}{
		{"raw", raw, `{"amount":"10.50","credit_type":"main"}`, facts, goldenRaw},
		{"raw, not JSON", raw, `amount=10.50`, nil, goldenText},
		{"marker", markers, `{"version":"1.4.0","ts":"2026-05-01T12:00:00.50+02:00","metadata":{"b":[1.50,-0,1e400],"a":"\u00e9/"}}`, nil, goldenMarker},
		{"marker, not an object", markers, `[1]`, nil, goldenArray},
		{"movement", movements, `{"amount":"10.50","credit_type":"main","reason":"x"}`, facts, goldenMovement},
	}
	for _, tt := range tests {
		if got := hex.EncodeToString(encode(t, printOf(tt.f, tt.body, tt.facts...))); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// A megabyte of members or of digits must not cost more than reading it.
func TestLargeBodiesArePrintedInTime(t *testing.T) {
	var members strings.Builder
	members.WriteString(`{"a":0`)
	for i := range 50_000 {
		fmt.Fprintf(&members, `,"%d":%d`, i, i)
	}
	members.WriteByte('}')
	bodies := map[string]string{
		"members":  members.String(),
		"digits":   `{"a":` + strings.Repeat("7", 1<<20) + `}`,
		"exponent": `{"a":1e` + strings.Repeat("7", 1<<20) + `}`,
		"levels":   `{"a":` + strings.Repeat("[", 1<<20),
	}
	for name, body := range bodies {
		begin := time.Now()
		p := printOf(markers, body)
		if got := p.Differs(printOf(markers, strings.Replace(body, "7", "8", 1))); len(got) > 20 {
			t.Errorf("%s: %d names", name, len(got))
		}
		// Comparing each with each takes minutes.
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}
