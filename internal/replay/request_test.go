package replay

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

func TestReadRequest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxIDRunes)
	for text, want := range map[string]request{
		`{"session_id":"s","chunk":0,"events":[]}`:                                                 {sessionID: "s", events: []byte(`[]`)},
		`{"events":[{}],"chunk":1000000,"session_id":"` + long + `","user_id":null,"x":[{"y":1}]}`: {sessionID: long, chunk: MaxChunk, events: []byte(`[{}]`), shown: summing{events: 1}},
		`{"session_id":"\u0000","chunk":3e0,"events":[ {"a" : 1} , {} ] ,"anon_id":" ","user_id":"u"}`: {
			sessionID: "\x00", chunk: 3, person: Person{UserID: "u", AnonID: " "}, events: []byte(`[ {"a" : 1} , {} ]`), shown: summing{events: 2},
		},
		`{"session_id":"s","ch\u0075nk":2.0,"events":[]}`: {sessionID: "s", chunk: 2, events: []byte(`[]`)},
	} {
		got, err := readRequest([]byte(text))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{}, summing{}), cmpopts.IgnoreTypes(partReader{})); err != nil || diff != "" {
			t.Errorf("%.100s: %v %s", text, err, diff)
		}
	}
}

// deep is an object that nests so many levels deep; its other members are not in
// order of name.
func deep(levels int) string {
	return strings.Repeat(`{"z":0,"a":`, levels-1) + `{"x":1.0,"b":2}` + strings.Repeat("}", levels-1)
}

// TestDeepPages: what is recorded nests as deep as pages do, and is compared by
// value all the same.
func TestDeepPages(t *testing.T) {
	t.Parallel()
	text := "[" + deep(maxDepth-2) + "]"
	r, err := readRequest([]byte(`{"x":` + deep(63) + `,"events":` + text + `,"session_id":"s","chunk":0}`))
	if err != nil || string(r.events) != text || r.shown.events != 1 {
		t.Fatalf("%d events, %v", r.shown.events, err)
	}
	first, err := digestOf(r.events)
	if err != nil {
		t.Fatal(err)
	}
	for text, same := range map[string]bool{
		strings.Replace(text, `"x":1.0,"b":2`, `"b":2.0, "x":1`, 1): true,
		strings.Replace(text, `"x":1.0`, `"x":2`, 1):                false,
	} {
		if other, err := digestOf([]byte(text)); err != nil || (other == first) != same {
			t.Errorf("%v: the same %v, want %v", err, other == first, same)
		}
	}
}

// TestReadingHoldsNoEvents: a body that is nothing but small events takes no
// more memory than another while it waits to be stored.
func TestReadingHoldsNoEvents(t *testing.T) { //nolint:paralleltest // it measures the heap
	const count = 400_000
	body := []byte(`{"session_id":"s","chunk":0,"events":[` + strings.Repeat("{},", count-1) + `{}]}`)
	held := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := held()
	r, err := readRequest(body)
	if err != nil || r.shown.events != count {
		t.Fatalf("%d events, %v", r.shown.events, err)
	}
	if after := held(); after > before+1<<20 {
		t.Errorf("%d bytes are held for %d of body", after-before, len(body))
	}
	runtime.KeepAlive(r)
	runtime.KeepAlive(body)
}

// TestRefusedRequests names, for each body, the code or the member at fault.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	with := func(member string) string { return `{"session_id":"s","chunk":0,"events":[],` + member + `}` }
	without := func(members string) string { return `{` + members + `}` }
	for text, want := range map[string]string{
		``: "invalid_json", `{`: "invalid_json", `{}x`: "invalid_json", "{\"session_id\":\"\xff\"}": "invalid_json",
		with(`"session_id":"t"`): "invalid_json", with(`"x":{"a":1,"a":2}`): "invalid_json",
		with(`"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64)):                        "invalid_json",
		`{"session_id":"s","chunk":0,"events":[` + deep(maxDepth-1) + `]}`:                      "invalid_json",
		`{"session_id":"s","chunk":0,"events":[` + deep(maxDepth-2) + `],"x":` + deep(64) + `}`: "invalid_json",
		`{"session_id":"s","chunk":0,"x":{"events":[` + deep(62) + `]},"events":[]}`:            "invalid_json",
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
		s := r.shown.summary(received)
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
