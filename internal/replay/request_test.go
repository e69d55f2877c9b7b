package replay

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

func TestReadRequest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxIDRunes)
	for text, want := range map[string]request{
		`{"session_id":"s","chunk":0,"events":[]}`:                                                 {sessionID: "s", events: []byte(`[]`), each: [][]byte{}},
		`{"events":[{}],"chunk":1000000,"session_id":"` + long + `","user_id":null,"x":[{"y":1}]}`: {sessionID: long, chunk: MaxChunk, events: []byte(`[{}]`), each: [][]byte{[]byte(`{}`)}},
		`{"session_id":"\u0000","chunk":3e0,"events":[ {"a" : 1} , {} ] ,"anon_id":" ","user_id":"u"}`: {
			sessionID: "\x00", chunk: 3, person: Person{UserID: "u", AnonID: " "}, events: []byte(`[ {"a" : 1} , {} ]`), each: [][]byte{[]byte(`{"a" : 1}`), []byte(`{}`)},
		},
		`{"session_id":"s","ch\u0075nk":2.0,"events":[]}`: {sessionID: "s", chunk: 2, events: []byte(`[]`), each: [][]byte{}},
	} {
		got, err := readRequest([]byte(text))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); err != nil || diff != "" {
			t.Errorf("%.100s: %v %s", text, err, diff)
		}
	}
}

// TestRefusedRequests names, for each body, the code or the member at fault.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	with := func(member string) string { return `{"session_id":"s","chunk":0,"events":[],` + member + `}` }
	without := func(members string) string { return `{` + members + `}` }
	for text, want := range map[string]string{
		``: "invalid_json", `{`: "invalid_json", `{}x`: "invalid_json", "{\"session_id\":\"\xff\"}": "invalid_json",
		with(`"session_id":"t"`): "invalid_json", with(`"x":{"a":1,"a":2}`): "invalid_json",
		with(`"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64)):                                              "invalid_json",
		`{"session_id":"s","chunk":0,"events":[` + strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 63) + `]}`: "invalid_json",
		`[]`: "body", `null`: "body", `"x"`: "body",
		without(`"chunk":0,"events":[]`): "session_id", without(`"session_id":null,"chunk":0,"events":[]`): "session_id",
		without(`"session_id":"","chunk":0,"events":[]`): "session_id", without(`"session_id":7,"chunk":0,"events":[]`): "session_id",
		without(`"session_id":"` + strings.Repeat("x", 201) + `","chunk":0,"events":[]`): "session_id",
		without(`"session_id":"s","events":[]`):                                          "chunk",
		without(`"session_id":"s","chunk":-1,"events":[]`):                               "chunk",
		without(`"session_id":"s","chunk":1000001,"events":[]`):                          "chunk",
		without(`"session_id":"s","chunk":1.5,"events":[]`):                              "chunk",
		without(`"session_id":"s","chunk":"1","events":[]`):                              "chunk",
		without(`"session_id":"s","chunk":1e400,"events":[]`):                            "chunk",
		without(`"session_id":"s","chunk":null,"events":[]`):                             "chunk",
		with(`"anon_id":""`): "anon_id", with(`"anon_id":{}`): "anon_id", with(`"user_id":"` + strings.Repeat("x", 201) + `"`): "user_id",
		without(`"session_id":"s","chunk":0`):                  "events",
		without(`"session_id":"s","chunk":0,"events":null`):    "events",
		without(`"session_id":"s","chunk":0,"events":{}`):      "events",
		without(`"session_id":"s","chunk":0,"events":[1]`):     "events",
		without(`"session_id":"s","chunk":0,"events":[{},[]]`): "events",
	} {
		_, err := readRequest([]byte(text))
		f, ok := errors.AsType[*fault.Error](err)
		if !ok {
			t.Errorf("%.100s: %v", text, err)
			continue
		}
		got := string(f.Code)
		if f.Code == api.CodeValidationFailed {
			got = fmt.Sprint(f.Details["field"])
		}
		if got != want {
			t.Errorf("%.100s: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"session_id":"s","chunk":0,"events":[{"type":4,"timestamp":1780221600000,"data":{"href":"/"}}],"user_id":"u"}`))
	f.Add([]byte(`{"session_id":"\u0000","chunk":1e0,"events":[{"type":6,"data":{"plugin":"rrweb/console@1","payload":{"level":"error"}}},{}]}`))
	received := time.Date(2026, 5, 31, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := readRequest(body)
		if err != nil {
			if code := fault.CodeOf(err); code != api.CodeInvalidJSON && code != api.CodeValidationFailed {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		s := summarize(r.each, received)
		if s.EndedAt.Before(s.StartedAt) || s.Pages > s.Events || s.Errors > s.Events || s.Clicks > s.Events || len(r.events) < 2 {
			t.Errorf("%q: %+v", body, s)
		}
		if r.chunk < 0 || r.chunk > MaxChunk || r.sessionID == "" {
			t.Errorf("%q: %+v", body, r)
		}
		first, err := digestOf(r.events)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := digestOf(r.events); err != nil || again != first {
			t.Errorf("%q: two digests", body)
		}
	})
}
