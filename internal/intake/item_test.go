package intake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

const someID = "8b0d3f2e-1c4a-4f6b-9d7e-0a1b2c3d4e5f"

// judgeOne returns the code an item is rejected with, or "".
func judgeOne(t *testing.T, item string) (api.RejectCode, *string) {
	t.Helper()
	p := newParser()
	defer p.release()
	b, err := p.batch([]byte(`{"events":[` + item + `]}`))
	if err != nil {
		t.Fatalf("%s: %v", item, err)
	}
	if len(b.rejected) == 0 {
		return "", nil
	}
	return b.rejected[0].Code, b.rejected[0].EventID
}

func TestItemChecksAndTheirOrder(t *testing.T) {
	long := strings.Repeat("ä", 201)
	fits := strings.Repeat("ä", 200)
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	tests := []struct {
		item string
		code api.RejectCode
	}{
		{`{"event":"a","anon_id":"x"}`, ""},
		{`{"event":"` + fits + `","user_id":"` + fits + `","session_id":"` + fits + `"}`, ""},
		{`{"event":"a","anon_id":"x","event_id":null,"user_id":null,"ts":null,"properties":null,"context":null,"unknown":[1]}`, ""},

		{`1`, api.RejectInvalidEvent},
		{`null`, api.RejectInvalidEvent},
		{`[]`, api.RejectInvalidEvent},
		{`{"anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":null,"anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":7,"anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":"","anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":" \u00a0\u3000","anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":"a\u0007b","anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":"a\u0000b","anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":"` + long + `","anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":"a","event":"b","anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":"a","\u0065vent":"b","anon_id":"x"}`, api.RejectInvalidEvent},
		{`{"event":"a","anon_id":"x","properties":{"a":1,"a":2}}`, api.RejectInvalidEvent},
		{`{"event":"a","anon_id":"x","unknown":{"a":1,"a":2}}`, api.RejectInvalidEvent},
		{`{"event":"a","anon_id":"x","properties":` + deep(61) + `}`, ""},
		{`{"event":"a","anon_id":"x","properties":` + deep(62) + `}`, api.RejectInvalidEvent},
		{`{"event":"a","anon_id":"x","unknown":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, api.RejectInvalidEvent},

		{`{"event":"a","event_id":"","anon_id":"x"}`, api.RejectInvalidEventID},
		{`{"event":"a","event_id":42,"anon_id":"x"}`, api.RejectInvalidEventID},
		{`{"event":"a","event_id":"50172"}`, api.RejectInvalidEventID},
		{`{"event":"a","event_id":"\u0038b0d3f2e-1c4a-4f6b-9d7e-0a1b2c3d4e5f","anon_id":"x"}`, ""},

		{`{"event":"a"}`, api.RejectMissingIdentity},
		{`{"event":"a","anon_id":null,"user_id":null,"session_id":""}`, api.RejectMissingIdentity},

		{`{"event":"a","anon_id":""}`, api.RejectInvalidAnonID},
		{`{"event":"a","anon_id":7,"user_id":""}`, api.RejectInvalidAnonID},
		{`{"event":"a","anon_id":"` + long + `"}`, api.RejectInvalidAnonID},
		{`{"event":"a","anon_id":"x","user_id":""}`, api.RejectInvalidUserID},
		{`{"event":"a","user_id":{},"session_id":""}`, api.RejectInvalidUserID},
		{`{"event":"a","user_id":"u","session_id":""}`, api.RejectInvalidSessionID},
		{`{"event":"a","user_id":"u","session_id":"` + long + `","ts":1}`, api.RejectInvalidSessionID},

		{`{"event":"a","user_id":"u","ts":"2026-05-01T10:00:00Z"}`, ""},
		{`{"event":"a","user_id":"u","ts":"2026-05-01t10:00:00.123456789+05:30"}`, ""},
		{`{"event":"a","user_id":"u","ts":"2026-05-01T10:00:00z"}`, ""},
		{`{"event":"a","user_id":"u","ts":1714557600000}`, ""},
		{`{"event":"a","user_id":"u","ts":99999999999999}`, ""},
		{`{"event":"a","user_id":"u","ts":100000000000}`, ""},
		{`{"event":"a","user_id":"u","ts":99999999999}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":1714557600}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":-1}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":1714557600000.5}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":1714557600000000000}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"1714557600000"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2026-05-01 10:00:00Z"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2026-05-01T10:00:00"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2026-02-30T10:00:00Z"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2026-05-01T10:00:00,5Z"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2026-05-01T1:00:00Z"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2026-05-01T10:00:00+24:00"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2026-05-01T10:00:00-00:60"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2026-05-01T10:00:00-23:59"}`, ""},
		{`{"event":"a","user_id":"u","ts":"0000-01-01T00:00:00Z"}`, ""},
		{`{"event":"a","user_id":"u","ts":"0000-01-01T00:00:00+00:01"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"9999-12-31T23:59:59.999Z"}`, ""},
		{`{"event":"a","user_id":"u","ts":"9999-12-31T23:59:59-00:01"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2016-12-31T23:59:60Z"}`, ""},
		{`{"event":"a","user_id":"u","ts":"2017-01-01T05:29:60.5+05:30"}`, ""},
		{`{"event":"a","user_id":"u","ts":"2016-12-30T23:59:60Z"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2016-12-31T23:58:60Z"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"ſſſſſſ1:00:60Z"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"2016-12-31T23:59:61Z"}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":"","properties":1}`, api.RejectInvalidTimestamp},
		{`{"event":"a","user_id":"u","ts":true}`, api.RejectInvalidTimestamp},

		{`{"event":"a","user_id":"u","properties":[]}`, api.RejectInvalidProperties},
		{`{"event":"a","user_id":"u","properties":"{}","context":1}`, api.RejectInvalidProperties},
		{`{"event":"a","user_id":"u","properties":{"a":"x\u0000y"}}`, api.RejectInvalidProperties},
		{`{"event":"a","user_id":"u","properties":{"x\u0000y":1}}`, api.RejectInvalidProperties},
		{`{"event":"a","user_id":"u","properties":{"a":[1e999]}}`, api.RejectInvalidProperties},
		{`{"event":"a","user_id":"u","properties":{"a":[1e-999, 1e308, -0]}}`, ""},
		{`{"event":"a","user_id":"u","context":7}`, api.RejectInvalidContext},
		{`{"event":"a","user_id":"u","context":{"a":-1e999}}`, api.RejectInvalidContext},
		{`{"event":"a","user_id":"u","properties":{"a":"` + strings.Repeat("x", MaxItemBytes) + `"}}`, api.RejectEventTooLarge},
		{`{"event":"a","user_id":"u","context":7,"properties":{"a":"` + strings.Repeat("x", MaxItemBytes) + `"}}`, api.RejectInvalidContext},
	}
	for _, tt := range tests {
		if code, _ := judgeOne(t, tt.item); code != tt.code {
			t.Errorf("%s: got %q, want %q", short(tt.item), code, tt.code)
		}
	}
}

func TestRejectionEchoesShortEventIDs(t *testing.T) {
	echo := func(eventID string) *string {
		t.Helper()
		code, echoed := judgeOne(t, `{"event":"","anon_id":"x","event_id":`+eventID+`}`)
		if code != api.RejectInvalidEvent {
			t.Fatalf("code %q", code)
		}
		return echoed
	}
	for _, s := range []string{"50172", "", strings.Repeat("é", 64), someID} {
		if got := echo(fmt.Sprintf("%q", s)); got == nil || *got != s {
			t.Errorf("%q: echoed %v", s, got)
		}
	}
	deep := `{"event":"a","anon_id":"x","event_id":"50172","properties":{"a":` + nest(62, "") + `}}`
	if code, got := judgeOne(t, deep); code != api.RejectInvalidEvent || got == nil || *got != "50172" {
		t.Errorf("nested too deep: %q, echoed %v", code, got)
	}
	for _, s := range []string{`42`, `null`, `{}`, `"` + strings.Repeat("x", 65) + `"`} {
		if got := echo(s); got != nil {
			t.Errorf("%s: echoed %q", s, *got)
		}
	}
}

func TestRequestFaults(t *testing.T) {
	good := `{"event":"a","anon_id":"x"}`
	many := strings.TrimSuffix(strings.Repeat(good+",", 1001), ",")
	tests := []struct {
		body string
		code api.Code
	}{
		{``, api.CodeInvalidJSON},
		{`{`, api.CodeInvalidJSON},
		{`{"events":[`, api.CodeInvalidJSON},
		{`{"events":[` + good + `]`, api.CodeInvalidJSON},
		{`{"events":[` + good + `]}x`, api.CodeInvalidJSON},
		{`{"events":[` + good + `]}{}`, api.CodeInvalidJSON},
		{`{"events":[{"event":}]}`, api.CodeInvalidJSON},
		{"{\"events\":[{\"event\":\"\xff\",\"anon_id\":\"x\"}]}", api.CodeInvalidJSON},
		{`{"events":[{"event":"\ud800","anon_id":"x"}]}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `],"events":[` + good + `]}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `],"a":1,"a":2}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `],"a":{"b":1,"b":2}}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `],"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `],"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `],"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, ""},
		{`{"events":[` + good + `,` + nest(70, "@") + `]}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `,` + nest(20000, "@") + `]}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `,` + nest(20000, "1") + `,]}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `,` + nest(20000, "1 2") + `]}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `,` + nest(20000, "\"\xff\"") + `]}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `,` + strings.Replace(nest(20000, "1"), "]", "}", 1) + `]}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `,` + strings.Repeat("[", 20000), api.CodeInvalidJSON},
		{`{"events":[` + good + `,` + nest(20000, `{"a":"]\"[","a":[]}`) + `]}`, ""},
		{`{"events":[` + good + `,` + nest(foldDepth-2, "1") + `,` + nest(foldDepth-1, "1") + `,` + nest(3*foldDepth, "[],1") + `]}`, ""},
		{`[]`, api.CodeValidationFailed},
		{`"x"`, api.CodeValidationFailed},
		{`null`, api.CodeValidationFailed},
		{`{}`, api.CodeValidationFailed},
		{`{"events":null}`, api.CodeValidationFailed},
		{`{"events":{}}`, api.CodeValidationFailed},
		{`{"events":[]}`, api.CodeValidationFailed},
		{`{"events":[` + many + `]}`, api.CodeValidationFailed},
		{`{"events":[` + many + `}`, api.CodeInvalidJSON},
		{`{"events":[` + good + `],"sent_at":"yesterday"}`, api.CodeValidationFailed},
		{`{"events":[` + good + `],"sent_at":1714557600}`, api.CodeValidationFailed},
		{`{"events":[` + good + `],"sent_at":null,"historical":null}`, ""},
		{`{"events":[` + good + `],"historical":1}`, api.CodeValidationFailed},
		{`{"historical":"yes","events":[` + good + `]]`, api.CodeInvalidJSON},
		{` {"sent_at":"2026-05-01T10:00:00Z","unknown":{"a":[1]},"events":[` + good + `]} `, ""},
	}
	for _, tt := range tests {
		p := newParser()
		_, err := p.batch([]byte(tt.body))
		p.release()
		if tt.code == "" && err != nil {
			t.Errorf("%s: %v", short(tt.body), err)
		}
		if tt.code != "" && (err == nil || fault.CodeOf(err) != tt.code) {
			t.Errorf("%s: got %v, want %s", short(tt.body), err, tt.code)
		}
	}
}

// nest puts a value into n arrays.
func nest(n int, value string) string {
	return strings.Repeat("[", n) + value + strings.Repeat("]", n)
}

func TestFingerprintIgnoresSpelling(t *testing.T) {
	print32 := func(item string) uint32 {
		t.Helper()
		p := newParser()
		defer p.release()
		b, err := p.batch([]byte(`{"events":[` + item + `]}`))
		if err != nil || len(b.items) != 1 {
			t.Fatalf("%s: %v %v", item, b, err)
		}
		return b.items[0].Fingerprint
	}
	base := `{"event":"a","anon_id":"x","ts":"2026-05-01T10:00:00Z","properties":{"n":1,"s":"é","l":[1,2],"o":{"a":true,"b":null}}}`
	same := []string{
		base,
		` { "properties" : { "o":{"b":null,"a":true}, "l":[1.0 ,2e0],"s":"\u00e9", "n":10e-1},"ts":1777629600000,"anon_id":"\u0078","event":"a","user_id":null,"event_id":"` + someID + `","extra":5}`,
	}
	for _, item := range same {
		if print32(item) != print32(base) {
			t.Errorf("%s differs", item)
		}
	}
	other := []string{
		`{"event":"b","anon_id":"x","ts":"2026-05-01T10:00:00Z","properties":{"n":1,"s":"é","l":[1,2],"o":{"a":true,"b":null}}}`,
		`{"event":"a","user_id":"x","ts":"2026-05-01T10:00:00Z","properties":{"n":1,"s":"é","l":[1,2],"o":{"a":true,"b":null}}}`,
		`{"event":"a","anon_id":"x","ts":"2026-05-01T10:00:01Z","properties":{"n":1,"s":"é","l":[1,2],"o":{"a":true,"b":null}}}`,
		`{"event":"a","anon_id":"x","ts":"2026-05-01T10:00:00Z","properties":{"n":"1","s":"é","l":[1,2],"o":{"a":true,"b":null}}}`,
		`{"event":"a","anon_id":"x","ts":"2026-05-01T10:00:00Z","properties":{"n":1,"s":"é","l":[2,1],"o":{"a":true,"b":null}}}`,
		`{"event":"a","anon_id":"x","ts":"2026-05-01T10:00:00Z","properties":{"n":1,"s":"é","l":[1,2],"o":{"a":null,"b":true}}}`,
		`{"event":"a","anon_id":"x","ts":"2026-05-01T10:00:00Z","context":{"n":1,"s":"é","l":[1,2],"o":{"a":true,"b":null}}}`,
	}
	for _, item := range other {
		if print32(item) == print32(base) {
			t.Errorf("%s does not differ", item)
		}
	}
}

func FuzzBatch(f *testing.F) {
	f.Add([]byte(`{"events":[{"event":"a","anon_id":"x","properties":{"a":[1,"\u00e9",{"b":null}]}}],"sent_at":1714557600000}`))
	f.Add([]byte(`{"events":[{"event":"a","event":"b"},[],{"event":"a","user_id":"u","event_id":"` + someID + `"}]}`))
	f.Add([]byte(strings.Repeat("[", 11000)))
	f.Fuzz(func(t *testing.T, body []byte) {
		p := newParser()
		defer p.release()
		b, err := p.batch(body)
		if err != nil {
			if _, ok := err.(*fault.Error); !ok { //nolint:errorlint // exactly this type is promised
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if n := len(b.items) + len(b.rejected); n < 1 || n > maxItems {
			t.Fatalf("%d items", n)
		}
		if _, err := p.identify(body); err == nil {
			t.Fatal("a batch was read as a person")
		}
	})
}
