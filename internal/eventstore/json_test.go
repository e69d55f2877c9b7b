package eventstore_test

import (
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// One row with unusual JSON must never make a question about all rows fail,
// whether or not intake would have let it in.
func TestOddJSON(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64)
	var items []record.Item
	for _, properties := range []string{
		`{"a":"x\u0000y"}`, `{"a":1e999}`, `{"a":-1e999}`, `{"a":1e-999}`, `{"a":` + strings.Repeat("9", 400) + `}`,
		deep, strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), `{"a":1,"a":2}`, `{"":1}`, `{"a\u0000b":1}`,
		`{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, `{"\ud800":1}`, "{\"a\":\"\x00\"}", `{bad`, `[]`, `null`, `"text"`, ``, `{"a":NaN}`, `{"a":"inf"}`,
		`{"a":"` + strings.Repeat("x", 60_000) + `"}`,
	} {
		items = append(items, event("odd", "x\x00y", "", 1_709_251_200_000, properties, properties))
	}
	s := open(t, eventstore.Options{})
	newLog(t, s).add(1_709_251_200_000, items...)
	for _, property := range []string{"properties.a", "context.a", "properties.a.a", "properties.\xef\xbf\xbd", "properties.0", "properties.a\\u0000"} {
		for _, f := range []string{
			`"op":"eq","value":"x"`, `"op":"ne","value":1`, `"op":"gt","value":1`, `"op":"lt","value":1e308`, `"op":"in","value":["x",1,true]`,
			`"op":"contains","value":"\u0000"`, `"op":"set"`, `"op":"not_set"`, `"op":"gte","value":"x"`, `"op":"eq","value":"x\u0000y"`,
		} {
			filter := `"where":[{"property":"` + property + `",` + f + `}]`
			for _, body := range []string{
				`{"type":"trend","interval":"year","measure":"persons",` + year + `,` + filter + `}`,
				`{"type":"breakdown","by":"` + property + `","measure":"persons","limit":3,` + year + `,` + filter + `}`,
				`{"type":"trend","interval":"hour","measure":"count",` + year + `,` + filter + `}`,
				`{"type":"breakdown","by":"` + property + `","measure":"count","limit":3,` + year + `,` + filter + `}`,
				`{"type":"funnel","steps":[{"event":"odd"},{"event":"odd",` + filter + `}],"window":"1h",` + year + `,` + filter + `}`,
				`{"type":"retention","start_event":"odd","return_event":"odd","interval":"month",` + year + `,` + filter + `}`,
				`{"type":"events",` + filter + `}`,
			} {
				if strings.Contains(property, `\u0000`) {
					if _, err := run(t, s, body); err == nil || !strings.Contains(err.Error(), "validation_failed") {
						t.Errorf("%s: %v", body, err)
					}
					continue
				}
				ask(t, s, body)
			}
		}
	}
	got := ask(t, s, `{"type":"trend","interval":"year","measure":"count",`+year+`,`+where("properties.a", "eq", `"x\u0000y"`)+`}`)
	want(t, got["series"], `[{"event":null,"points":[{"at":"2024-01-01T00:00:00Z","value":1}]}]`)
}

func TestNULInIDs(t *testing.T) {
	s := open(t, eventstore.Options{})
	newLog(t, s).add(at(t, "03-02 00:00"),
		event("a", "x\x00y", "", at(t, "03-01 00:00")),
		event("a", "x\x00z", "", at(t, "03-01 00:00")),
		event("a", "x", "", at(t, "03-01 00:00")),
		alias("x\x00y", "u\x00v", at(t, "03-01 00:00")))
	got := ask(t, s, `{"type":"events","person":"u\u0000v"}`)["items"].([]any)
	if len(got) != 1 || got[0].(map[string]any)["anon_id"] != "x\x00y" || got[0].(map[string]any)["person"] != "u\x00v" {
		t.Errorf("got %s", show(got))
	}
	persons := ask(t, s, `{"type":"trend","interval":"year","measure":"persons",`+year+`}`)
	want(t, persons["series"], `[{"event":null,"points":[{"at":"2024-01-01T00:00:00Z","value":3}]}]`)
}
