package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/record"
)

func TestRequestID(t *testing.T) {
	b := setup(t)
	for given, kept := range map[string]bool{
		"a": true, "req-1!~": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a b": false, "é": false, "a\tb": false,
	} {
		for _, q := range []request{
			{method: "GET", path: "/healthz"}, {method: "GET", path: "/nothing"}, {path: "/v1/track", secret: "server", body: "{}"},
		} {
			q.headers = map[string]string{"X-Request-Id": given}
			got := b.do(t, q).header.Get("X-Request-Id")
			if kept && got != given || !kept && !uuidv7.MatchString(got) {
				t.Errorf("%s with %q got %q", q.path, given, got)
			}
		}
	}
	c := b.dial(t)
	send(t, c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\r\nX-Request-Id: b\r\n\r\n")
	if got := receive(t, c, "GET").header.Get("X-Request-Id"); !uuidv7.MatchString(got) {
		t.Errorf("two ids gave %q", got)
	}
}

func TestPreflight(t *testing.T) {
	b := setup(t)
	for _, path := range []string{"/v1/track", "/v1/identify"} {
		r := b.do(t, request{method: "OPTIONS", path: path, headers: map[string]string{
			"Origin": "https://any.example", "Access-Control-Request-Method": "POST",
			"Access-Control-Request-Headers": "authorization,content-type",
		}})
		if r.status != http.StatusNoContent || r.body != "" {
			t.Errorf("%s: %d %q", path, r.status, r.body)
		}
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin":  "*",
			"Access-Control-Allow-Methods": "POST, OPTIONS",
			"Access-Control-Allow-Headers": "Authorization, Content-Type, Content-Encoding, Idempotency-Key, X-Request-Id",
			"Access-Control-Max-Age":       "86400",
		} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	if len(b.intake.taken()) != 0 {
		t.Error("a preflight reached intake")
	}
}

func TestEveryAnswerOfABrowserMethodCanBeRead(t *testing.T) {
	b := setup(t)
	for _, q := range []request{
		{path: "/v1/track", secret: "browser", body: "{}"},
		{path: "/v1/track", secret: "nobody", body: "{}"},
		{path: "/v1/track", secret: "browser", body: "{"},
		{path: "/v1/track", secret: "slow", body: "{}"},
		{method: "PUT", path: "/v1/identify"},
	} {
		r := b.do(t, q)
		if r.header.Get("Access-Control-Allow-Origin") != "*" ||
			r.header.Get("Access-Control-Expose-Headers") != "X-Request-Id, X-Should-Retry, Retry-After, Idempotency-Replayed" {
			t.Errorf("%+v: %v", q, r.header)
		}
	}
	for _, path := range []string{"/v1/alias", queryPath, "/nothing"} {
		if got := b.do(t, request{path: path}).header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s may be read from any page", path)
		}
	}
}

func TestOrigins(t *testing.T) {
	b := setup(t)
	for origin, allowed := range map[string]bool{
		"": true, "https://shop.example": true, "HTTPS://SHOP.EXAMPLE": true, "https://shop.example:443": true, "http://localhost:3000": true,
		"http://shop.example": false, "https://shop.example:8443": false, "https://shop.example.evil": false, "https://evil-shop.example": false,
		"https://a.shop.example": false, "http://localhost": false, "http://localhost:30000": false, "null": false, "https://shop.example/": false,
	} {
		headers := map[string]string{}
		if origin != "" {
			headers["Origin"] = origin
		}
		before := len(b.intake.taken())
		r := b.do(t, request{path: "/v1/track?key=pinned", body: "{}", headers: headers})
		took := len(b.intake.taken()) > before
		if allowed && (r.status != 202 || !took) {
			t.Errorf("%q: %d %s", origin, r.status, r.body)
		}
		if !allowed {
			wantRefusal(t, r, api.CodeForbidden)
			if took {
				t.Errorf("%q reached intake", origin)
			}
		}
		if r := b.do(t, request{path: "/v1/track?key=browser", body: "{}", headers: headers}); r.status != 202 {
			t.Errorf("%q with a token for any origin: %d", origin, r.status)
		}
		if r := b.do(t, request{path: "/v1/track", secret: "server", body: "{}", headers: headers}); r.status != 202 {
			t.Errorf("%q with a server key: %d", origin, r.status)
		}
	}
	c := b.dial(t)
	send(t, c, "POST /v1/track?key=pinned HTTP/1.1\r\nHost: x\r\nOrigin: https://shop.example\r\nOrigin: https://shop.example\r\nContent-Length: 2\r\n\r\n{}")
	wantRefusal(t, receive(t, c, "POST"), api.CodeForbidden)
}

func TestSourceOfItems(t *testing.T) {
	b := setup(t)
	for secret, want := range map[string]intake.Source{
		"browser": {Project: 7, KeyKind: record.KeyBrowser, Key: 1, UserAgent: "sdk/1"},
		"server":  {Project: 7, KeyKind: record.KeyServer, Key: 3, UserAgent: "sdk/1"},
		"legacy":  {Project: 7, KeyKind: record.KeyLegacy, Key: 4, UserAgent: "sdk/1"},
	} {
		b.do(t, request{path: "/v1/identify", secret: secret, body: "{}", headers: map[string]string{"User-Agent": "sdk/1"}})
		taken := b.intake.taken()
		if got := taken[len(taken)-1]; got.source != want || got.method != "identify" {
			t.Errorf("%s: %+v, want %+v", secret, got, want)
		}
	}
}

func TestTrackResponse(t *testing.T) {
	long := strings.Repeat("é", 64)
	for _, response := range []api.TrackResponse{
		{},
		{Accepted: 1000, Duplicates: 999},
		{Rejected: []api.Rejection{
			{Index: 0, EventID: nil, Code: api.RejectInvalidEvent, Message: "no event"},
			{Index: 999, EventID: new("\"\\\n\x00</script>\u2028"), Code: api.RejectInvalidEventID, Message: long},
		}},
	} {
		b := setup(t)
		b.intake.track = func(context.Context, []byte) (api.TrackResponse, error) { return response, nil }
		r := b.do(t, request{path: "/v1/track", secret: "server", body: "{}"})
		var got api.TrackResponse
		if err := json.Unmarshal([]byte(r.body), &got); err != nil {
			t.Fatalf("%q: %v", r.body, err)
		}
		if got.Rejected == nil {
			t.Error("rejected is null")
		}
		if response.Rejected == nil {
			response.Rejected = []api.Rejection{}
		}
		want, _ := json.Marshal(response)
		again, _ := json.Marshal(got)
		if string(want) != string(again) {
			t.Errorf("got %s, want %s", again, want)
		}
	}
}

func TestStringsAreAlwaysJSON(t *testing.T) {
	for _, s := range []string{"", "\xff", "a\xc3", "\x00\x1f", "\u2028"} {
		if out := appendString(nil, s); !json.Valid(out) {
			t.Errorf("%q became %s", s, out)
		}
	}
}

func TestPanicIsAnInternalError(t *testing.T) {
	b := setup(t)
	b.intake.track = func(context.Context, []byte) (api.TrackResponse, error) { panic("secret words") }
	r := b.do(t, request{path: "/v1/track", secret: "server", body: "{}"})
	wantRefusal(t, r, api.CodeInternal)
	if strings.Contains(r.body, "secret words") {
		t.Errorf("the answer tells what the panic said: %s", r.body)
	}
	if log := b.log.String(); !strings.Contains(log, "secret words") || !strings.Contains(log, "answer_test.go") {
		t.Errorf("the log does not tell what and where: %s", log)
	}
	b.intake.track = nil
	if r := b.do(t, request{path: "/v1/track", secret: "server", body: "{}"}); r.status != 202 {
		t.Errorf("after the panic: %d", r.status)
	}
	if held := b.service.bodies.held.Load(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}

func TestNoAnswer(t *testing.T) {
	b := setup(t)
	b.intake.track = func(context.Context, []byte) (api.TrackResponse, error) {
		return api.TrackResponse{}, errors.Join(errors.New("sync failed"), intake.ErrNoAnswer)
	}
	c := b.dial(t)
	send(t, c, head("Content-Length: 2\r\n")+"{}")
	if got, err := io.ReadAll(c); err != nil || len(got) != 0 {
		t.Errorf("answered %q, %v", got, err)
	}
	if log := b.log.String(); strings.Contains(log, "panic") || !strings.Contains(log, "sync failed") {
		t.Errorf("log: %s", log)
	}
	if b.counted(t, "/v1/track", "no_answer", "0") != 1 {
		t.Error("not counted")
	}
	if held := b.service.bodies.held.Load(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}

func TestHealthReadyMetrics(t *testing.T) {
	b := setup(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if r := b.do(t, request{method: "GET", path: path}); r.status != 200 || r.body != "{\"status\":\"ok\"}\n" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	b.ready = errors.New("draining")
	wantRefusal(t, b.do(t, request{method: "GET", path: "/readyz"}), api.CodeUnavailable)
	b.ready = fault.New(api.CodeUnavailable, "the intake store is catching up").After(3e9)
	r := b.do(t, request{method: "GET", path: "/readyz"})
	if e := wantRefusal(t, r, api.CodeUnavailable); e.Message != "the intake store is catching up" || r.header.Get("Retry-After") != "3" {
		t.Errorf("%+v", e)
	}
	if r := b.do(t, request{method: "GET", path: "/healthz"}); r.status != 200 {
		t.Error("a process that is not ready is not alive")
	}
	r = b.do(t, request{method: "GET", path: "/metrics"})
	for _, want := range []string{
		`actionpulse_http_requests_total{code="ok",route="/healthz",status="200"} 2`,
		`actionpulse_http_requests_total{code="unavailable",route="/readyz",status="503"} 2`,
		"# TYPE actionpulse_http_request_seconds histogram", "go_goroutines", "actionpulse_intake_accepted_total 0",
	} {
		if !strings.Contains(r.body, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %s", r.status, r.header.Get("Content-Type"))
	}
}

func TestPathsDoNotBecomeMetrics(t *testing.T) {
	b := setup(t)
	b.do(t, request{method: "GET", path: "/made/up/by/a/client"})
	b.do(t, request{method: "MADEUP", path: "/v1/track"})
	if b.counted(t, "none", "not_found", "404") != 1 || b.counted(t, "/v1/track", "method_not_allowed", "405") != 1 {
		t.Error("not counted by route")
	}
	if r := b.do(t, request{method: "GET", path: "/metrics"}); strings.Contains(r.body, "made/up") || strings.Contains(r.body, "MADEUP") {
		t.Error("a client chose the name of a metric")
	}
}

func TestIdempotencyKeyChangesNothing(t *testing.T) {
	b := setup(t)
	r := b.do(t, request{path: "/v1/track", secret: "server", body: "{}", headers: map[string]string{"Idempotency-Key": "a, b"}})
	if r.status != 202 {
		t.Errorf("%d %s", r.status, r.body)
	}
}
