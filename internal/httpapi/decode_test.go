package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
)

// thing is a body with every sort of member.
type thing struct {
	Name   string         `json:"name"             maxLength:"5"     minLength:"1"`
	Kind   string         `json:"kind,omitempty"   enum:"red,blue"`
	Count  *int64         `json:"count,omitempty"  maximum:"10"      minimum:"1"`
	Share  float64        `json:"share,omitempty"`
	On     bool           `json:"on,omitempty"`
	At     *time.Time     `json:"at,omitempty"`
	ID     string         `json:"id,omitempty"     format:"uuid"`
	Note   *string        `json:"note"             maxLength:"3"`
	Slug   string         `json:"slug,omitempty"   pattern:"^[a-z]+$" patternDescription:"lower case"`
	Origin []string       `json:"origin,omitempty" maxItems:"2"`
	Steps  []step         `json:"steps,omitempty"`
	Extra  map[string]any `json:"extra,omitempty"  maxProperties:"2"`
}

type step struct {
	Event string `json:"event"`
}

const thingLimit = 2 << 10

// thingRoute echoes a thing.
func thingRoute() route {
	return route{
		"POST", "/test/things",
		access{kinds: []credential.Kind{credential.Access}, role: roleMember},
		jsonBody(thingLimit), mutates,
		operation{id: "createThing", tag: tagServer, summary: "Make a thing", request: thing{}, replies: replyCreated("Made.", thing{})},
		func(_ *service, x *exchange) (answer, error) {
			v, err := decode[thing](x)
			if err != nil {
				return answer{}, err
			}
			return jsonAnswer(http.StatusCreated, v)
		},
	}
}

func TestDecode(t *testing.T) {
	b := setupWithin(t, patience, thingRoute())
	for body, want := range map[string]string{
		`{"name":"a","note":null}`:                      `{"name":"a","note":null}`,
		`{"note":"\u00e9", "name":"éééé\ud83d\ude00" }`: `{"name":"éééé😀","note":"é"}`,
		`{"name":"a","note":null,"kind":null,"count":null,"share":null,"on":null,"at":null,"id":null,"origin":null,"steps":null,"extra":null}`: `{"name":"a","note":null}`,
		`{"name":"a","note":"n","count":10,"kind":"red","origin":["x","y"],"steps":[{"event":"e"}],"extra":{"a.b":[{"c":null}],"d":1}}`:        `{"name":"a","kind":"red","count":10,"note":"n","origin":["x","y"],"steps":[{"event":"e"}],"extra":{"a.b":[{"c":null}],"d":1}}`,
		`{"name":"a","note":null,"at":"2026-05-01T12:00:00+02:00"}`:                                                                            `{"name":"a","at":"2026-05-01T12:00:00+02:00","note":null}`,
		`{"name":"a","note":null,"count":1e1}`: "",
	} {
		r := b.do(t, request{path: "/test/things", secret: "member", body: body})
		if want == "" { // read by the schema, but not by the Go type: never a 500
			wantRefusal(t, r, api.CodeValidationFailed)
			continue
		}
		if r.status != http.StatusCreated || strings.TrimSpace(r.body) != want {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}

func TestDecodeRefusesBrokenJSON(t *testing.T) {
	b := setupWithin(t, patience, thingRoute())
	deep := func(n int) string {
		return `{"name":"a","note":null,"extra":{"x":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}}`
	}
	for _, body := range []string{
		"", " ", "{", `{"name":"a","note":null}{}`, `{"name":"a","note":null} x`, `{"name":"a","name":"a","note":null}`, `{"name":"a","note":null,}`,
		`{'name':'a'}`, "{\"name\":\"\xff\",\"note\":null}", "\xef\xbb\xbf{}", `{"name":"\ud800","note":null}`, `{"name":NaN}`, "[1", "nul",
		`{"name":"a","note":null,"extra":{"a":{"b":1,"b":2}}}`, deep(65), strings.Repeat("[", 1000),
	} {
		wantRefusal(t, b.do(t, request{path: "/test/things", secret: "member", body: body}), api.CodeInvalidJSON)
	}
	if r := b.do(t, request{path: "/test/things", secret: "member", body: deep(64)}); r.status != http.StatusCreated {
		t.Errorf("64 levels: %d %s", r.status, r.body)
	}
}

// TestDecodeNamesTheMember: what is wrong is named, and what was sent is never
// repeated.
func TestDecodeNamesTheMember(t *testing.T) {
	b := setupWithin(t, patience, thingRoute())
	with := func(more string) string { return `{"name":"a","note":null,` + more + `}` }
	const secret = "hunter2"
	for _, c := range []struct{ body, field, message string }{
		{`null`, "body", "body must be an object"},
		{`["hunter2"]`, "body", "body must be an object"},
		{`"hunter2"`, "body", "body must be an object"},
		{`{}`, "name", "name is required"},
		{`{"name":"a"}`, "note", "note is required"},
		{`{"name":null,"note":null}`, "name", "name is required"},
		{`{"name":"","note":null}`, "name", "name must be a string of 1 to 5 characters"},
		{`{"name":"hunter2","note":null}`, "name", "name must be a string of 1 to 5 characters"},
		{`{"name":7,"note":null}`, "name", "name must be a string of 1 to 5 characters"},
		{`{"Name":"a","note":null}`, "name", "name is required"},
		{with(`"Kind":"red"`), "Kind", "Kind is not known here"},
		{with(`"kind":"hunter2"`), "kind", "kind must be red or blue"},
		{with(`"count":0`), "count", "count must be a whole number from 1 to 10"},
		{with(`"count":1.5`), "count", "count must be a whole number from 1 to 10"},
		{with(`"count":"hunter2"`), "count", "count must be a whole number from 1 to 10"},
		{with(`"share":1e999`), "share", "share has a value that cannot be read"},
		{with(`"on":1`), "on", "on must be true or false"},
		{with(`"at":"hunter2"`), "at", "at must be a time as in RFC 3339, like 2024-01-01T00:00:00Z"},
		{with(`"id":"hunter2"`), "id", "id must be a UUID"},
		{with(`"note":"hunter2"`), "", ""},
		{with(`"slug":"hunter2"`), "slug", "slug must be a string, lower case"},
		{with(`"origin":["hunter2",2]`), "origin[1]", "origin[1] must be a string"},
		{with(`"origin":["a","b","hunter2"]`), "origin", "origin must be a list of at most 2 elements"},
		{with(`"origin":{}`), "origin", "origin must be a list of at most 2 elements"},
		{with(`"steps":[{"event":"a"},{}]`), "steps[1].event", "steps[1].event is required"},
		{with(`"steps":[{"event":"a","a.b":1,"c":"hunter2"}]`), "steps[0].a.b", "steps[0].a.b is not known here"},
		{with(`"steps":[null]`), "steps[0]", "steps[0] must be an object"},
		{with(`"extra":{"a":1,"b":2,"c":3}`), "extra", "extra must be an object of at most 2 members"},
		{with(`"typo":"hunter2"`), "typo", "typo is not known here"},
		{with(`"` + strings.Repeat("é", 500) + `":1`), strings.Repeat("é", 63) + "…", strings.Repeat("é", 63) + "… is not known here"},
	} {
		r := b.do(t, request{path: "/test/things", secret: "member", body: c.body})
		if c.field == "" { // a repeated name is no matter of the schema
			wantRefusal(t, r, api.CodeInvalidJSON)
			continue
		}
		e := wantRefusal(t, r, api.CodeValidationFailed)
		if e.Details["field"] != c.field || e.Message != c.message {
			t.Errorf("%.80s: field %v, message %q", c.body, e.Details["field"], e.Message)
		}
		if strings.Contains(r.body, secret) {
			t.Errorf("%s: the answer repeats what was sent: %s", c.body, r.body)
		}
	}
}

// TestTypedRoutesUseTheEnvelope: a route that decodes by its schema is like
// any other before and around that.
func TestTypedRoutesUseTheEnvelope(t *testing.T) {
	broken := thingRoute()
	broken.path = "/test/broken"
	broken.handle = func(*service, *exchange) (answer, error) { panic("hunter2") }
	b := setupWithin(t, impatience, thingRoute(), broken)
	const path = "/test/things"
	kind := func(k string) map[string]string { return map[string]string{"Content-Type": k} }
	for code, q := range map[api.Code]request{
		api.CodeUnauthenticated:      {path: path, body: "{"},
		api.CodeForbidden:            {path: path, secret: "viewer", body: "{"},
		api.CodeNotFound:             {path: path + "/x", secret: "member", body: "{}"},
		api.CodeMethodNotAllowed:     {method: "DELETE", path: path, secret: "member"},
		api.CodeUnsupportedMediaType: {path: path, secret: "member", body: "{}", headers: kind("text/plain")},
		api.CodePayloadTooLarge:      {path: path, secret: "member", body: strings.Repeat(" ", thingLimit+1)},
	} {
		wantRefusal(t, b.do(t, q), code)
	}
	c := b.dial(t)
	send(t, c, "POST "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer member\r\nContent-Length: 9\r\n\r\n{")
	wantRefusal(t, receive(t, c, "POST"), api.CodeRequestTimeout)
	r := b.do(t, request{path: "/test/broken", secret: "member", body: "{}"})
	if e, ok := r.refusal(); !ok || e.Code != api.CodeInternal || strings.Contains(r.body, "hunter2") {
		t.Errorf("panic: %d %s", r.status, r.body)
	}
}
