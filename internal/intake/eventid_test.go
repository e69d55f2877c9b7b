package intake

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestParseEventIDForms(t *testing.T) {
	const canonical = "8b0d3f2e-1c4a-4f6b-9d7e-0a1b2c3d4e5f"
	want := uuid.MustParse(canonical)
	plain := strings.ReplaceAll(canonical, "-", "")
	valid := []string{canonical, plain, "{" + canonical + "}", "urn:uuid:" + canonical}
	for _, s := range valid {
		for _, form := range []string{s, strings.ToUpper(s)} {
			if id, ok := parseEventID([]byte(form)); !ok || uuid.UUID(id) != want {
				t.Errorf("%q: got %v %v", form, uuid.UUID(id), ok)
			}
		}
	}
	invalid := []string{
		"", "x" + canonical + "y", " " + canonical + " ", canonical[:35], canonical + "\n", "\n" + canonical,
		strings.ReplaceAll(canonical, "-", "_"), "{" + canonical, canonical + "}", "(" + canonical + ")", "[" + canonical + "]",
		"{" + plain + "}", "urn:uuid:" + plain, "urn:uuid:{" + canonical + "}", "urn\x1auuid\x1a" + canonical, "urn_uuid_" + canonical,
		uuid.Nil.String(), uuid.Max.String(), strings.Repeat("0", 32), strings.Repeat("f", 32), strings.Repeat("F", 32),
		strings.Repeat("g", 32), plain[:31] + "-", "50172", canonical[:8] + "-" + canonical[9:13] + canonical[13:35] + "x",
		canonical[:35] + "é", "8b0d3f2e1-c4a-4f6b-9d7e-0a1b2c3d4e5f",
	}
	for _, s := range invalid {
		if id, ok := parseEventID([]byte(s)); ok {
			t.Errorf("%q was read as %v", s, uuid.UUID(id))
		}
	}
}

func FuzzParseEventID(f *testing.F) {
	f.Add("8b0d3f2e-1c4a-4f6b-9d7e-0a1b2c3d4e5f")
	f.Add("{8b0d3f2e-1c4a-4f6b-9d7e-0a1b2c3d4e5f}")
	f.Add("urn:uuid:8b0d3f2e-1c4a-4f6b-9d7e-0a1b2c3d4e5f")
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := parseEventID([]byte(s))
		if !ok {
			return
		}
		parsed, err := uuid.Parse(s)
		if err != nil || parsed != uuid.UUID(id) {
			t.Fatalf("%q: got %v, the library says %v %v", s, uuid.UUID(id), parsed, err)
		}
		if again, ok := parseEventID([]byte(uuid.UUID(id).String())); !ok || again != id {
			t.Fatalf("%q: its canonical form is not read back", s)
		}
	})
}
