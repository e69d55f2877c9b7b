package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

const (
	debugPath = "/api/v1/projects/" + projectID + "/ingest/debug"
	queryPath = "/api/v1/projects/" + projectID + "/query"
)

// scenario is a request, its answer, and that nothing but the answer came of
// it unless it says so.
type scenario struct {
	name string
	request
	// code is the refusal; empty for success with status.
	code   api.Code
	status int
	// holds is part of the body.
	holds string
	// takes says that the request reaches intake.
	takes bool
}

func (s scenario) run(t *testing.T, b *bundle) {
	before := len(b.intake.taken())
	r := b.do(t, s.request)
	if s.code != "" {
		wantRefusal(t, r, s.code)
	} else if r.status != s.status {
		t.Errorf("status %d, want %d: %s", r.status, s.status, r.body)
	}
	if !strings.Contains(r.body, s.holds) {
		t.Errorf("body %q does not hold %q", r.body, s.holds)
	}
	if r.header.Get("X-Request-Id") == "" {
		t.Error("no X-Request-Id")
	}
	if took := len(b.intake.taken()) - before; (took == 1) != s.takes || took > 1 {
		t.Errorf("%d requests reached intake, want %v", took, s.takes)
	}
	if q := s.request.secret; q != "" && len(q) > 4 && s.code != "" && strings.Contains(r.body, `"`+q+`"`) && s.code != api.CodeForbidden {
		t.Errorf("the answer holds the secret: %s", r.body)
	}
}

func runScenarios(t *testing.T, scenarios []scenario) {
	t.Helper()
	b := setup(t)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { s.run(t, b) })
	}
}

func TestWhoMayCallWhat(t *testing.T) {
	var all []scenario
	add := func(path, secret string, code api.Code, status int) {
		method, takes := "POST", strings.HasPrefix(path, "/v1/") && code == ""
		if path == debugPath {
			method = "GET"
		}
		all = append(all, scenario{
			name: secret + " " + path, code: code, status: status, takes: takes,
			request: request{method: method, path: path, secret: secret, body: "{}"},
		})
	}
	for _, path := range []string{"/v1/track", "/v1/identify", "/v1/alias"} {
		for _, secret := range []string{"server", "legacy"} {
			add(path, secret, "", 202)
		}
		for _, secret := range []string{"project", "ci", "owner", "viewer"} {
			add(path, secret, api.CodeForbidden, 0)
		}
	}
	add("/v1/track", "browser", "", 202)
	add("/v1/identify", "browser", "", 202)
	add("/v1/alias", "browser", api.CodeForbidden, 0)
	for _, path := range []string{debugPath, queryPath} {
		for _, secret := range []string{"owner", "member"} {
			add(path, secret, "", 200)
		}
		for _, secret := range []string{"browser", "server", "legacy", "project", "ci", "unknown"} {
			add(path, secret, api.CodeForbidden, 0)
		}
		add(path, "stranger", api.CodeNotFound, 0)
	}
	add(debugPath, "viewer", "", 200)
	add(queryPath, "viewer", api.CodeForbidden, 0)
	for _, path := range []string{"/v1/track", "/v1/identify", "/v1/alias", debugPath, queryPath} {
		add(path, "", api.CodeUnauthenticated, 0)
		add(path, "nobody", api.CodeUnauthenticated, 0)
		add(path, "expired", api.CodeTokenExpired, 0)
		add(path, "suspended", api.CodePaymentRequired, 0)
		add(path, "broken", api.CodeInternal, 0)
	}
	runScenarios(t, all)
}

func TestHowACredentialIsSent(t *testing.T) {
	header := func(value string) map[string]string { return map[string]string{"Authorization": value} }
	runScenarios(t, []scenario{
		{name: "scheme in any case", request: request{path: "/v1/track", body: "{}", headers: header("bEARER  server")}, status: 202, takes: true},
		{name: "no scheme", request: request{path: "/v1/track", body: "{}", headers: header("server")}, code: api.CodeUnauthenticated},
		{name: "another scheme", request: request{path: "/v1/track", body: "{}", headers: header("Basic server")}, code: api.CodeUnauthenticated},
		{name: "nothing after the scheme", request: request{path: "/v1/track", body: "{}", headers: header("Bearer ")}, code: api.CodeUnauthenticated},
		{name: "browser token in the URL", request: request{path: "/v1/track?key=browser", body: "{}"}, status: 202, takes: true},
		{name: "beside a site's own scheme", request: request{path: "/v1/track?key=browser", body: "{}", headers: header("Basic abc")}, status: 202, takes: true},
		{name: "the header decides", request: request{path: "/v1/track?key=nobody", secret: "server", body: "{}"}, status: 202, takes: true},
		{name: "server key in the URL", request: request{path: "/v1/track?key=server", body: "{}"}, code: api.CodeUnauthenticated, holds: "replace this credential"},
		{name: "legacy key in the URL", request: request{path: "/v1/alias?key=legacy", body: "{}"}, code: api.CodeUnauthenticated},
		{name: "browser token in the URL of alias", request: request{path: "/v1/alias?key=browser", body: "{}"}, code: api.CodeForbidden},
		{name: "two keys in the URL", request: request{path: "/v1/track?key=browser&key=browser", body: "{}"}, code: api.CodeUnauthenticated},
		{name: "malformed query string", request: request{path: "/v1/track?key=browser&%zz", body: "{}"}, code: api.CodeUnauthenticated},
		{name: "access token in the URL", request: request{path: queryPath + "?key=owner", body: "{}"}, code: api.CodeUnauthenticated},
	})
}

func TestEveryRefusalOfTheQueryAndDebugPaths(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "answer", request: request{path: queryPath, secret: "member", body: `{"type":"trend"}`}, status: 200, holds: `"<ok>"`},
		{name: "not JSON", request: request{path: queryPath, secret: "member", body: "{"}, code: api.CodeInvalidJSON},
		{name: "bad query", request: request{path: queryPath, secret: "member", body: `{"type":"bad"}`}, code: api.CodeValidationFailed, holds: `"field":"type"`},
		{name: "too slow", request: request{path: queryPath, secret: "member", body: `{"type":"slow"}`}, code: api.CodeQueryTimeout, holds: `"hint":"narrow it"`},
		{name: "answer that cannot be encoded", request: request{path: queryPath, secret: "member", body: `{"type":"unencodable"}`}, code: api.CodeInternal},
		{name: "not JSON, of another organization", request: request{path: queryPath, secret: "stranger", body: "{"}, code: api.CodeInvalidJSON},
		{name: "bad query of another organization", request: request{path: queryPath, secret: "stranger", body: `{"type":"bad"}`}, code: api.CodeValidationFailed},
		{name: "slow query of another organization", request: request{path: queryPath, secret: "stranger", body: `{"type":"slow"}`}, code: api.CodeNotFound},
		{name: "malformed id", request: request{path: "/api/v1/projects/x/query", secret: "member", body: "{}"}, code: api.CodeNotFound},
		{name: "id of dots", request: request{path: "/api/v1/projects/%2e%2e/query", secret: "member", body: "{}"}, code: api.CodeNotFound},
		{name: "text/plain", request: request{path: queryPath, secret: "member", body: "{}", headers: map[string]string{"Content-Type": "text/plain"}}, code: api.CodeUnsupportedMediaType},
		{name: "too large", request: request{path: queryPath, secret: "member", body: strings.Repeat(" ", queryLimit+1)}, code: api.CodePayloadTooLarge, holds: `"limit_bytes":262144`},
		{name: "debug", request: request{method: "GET", path: debugPath, secret: "viewer"}, status: 200, holds: `"rejected":[]`},
		{name: "debug of another organization", request: request{method: "GET", path: debugPath, secret: "stranger"}, code: api.CodeNotFound},
	})
}

func TestPathsAndMethods(t *testing.T) {
	all := []scenario{
		{name: "post to a read", request: request{method: "POST", path: debugPath, secret: "owner"}, code: api.CodeMethodNotAllowed},
		{name: "get of track", request: request{method: "GET", path: "/v1/track"}, code: api.CodeMethodNotAllowed},
		{name: "a method of one's own", request: request{method: "BREW", path: "/v1/track"}, code: api.CodeMethodNotAllowed},
		{name: "options without CORS", request: request{method: "OPTIONS", path: queryPath}, code: api.CodeMethodNotAllowed},
		{name: "head of health", request: request{method: "HEAD", path: "/healthz"}, status: 200},
		{name: "escaped letter", request: request{path: "/v1/tr%61ck", secret: "server", body: "{}"}, status: 202, takes: true},
	}
	for _, path := range []string{
		"/", "//", "/v1", "/v1/", "/v1/track/", "//v1/track", "/v1//track", "/v1/./track", "/v1/x/../track", "/V1/track",
		"/v1/track/..", "/v1/track%2F", "/v1/replays", "/api/v1/projects//query", "/healthz/", "/nothing",
	} {
		for _, method := range []string{"GET", "POST", "OPTIONS", "DELETE"} {
			all = append(all, scenario{
				name: method + " " + path, code: api.CodeNotFound,
				request: request{method: method, path: path, secret: "server"},
			})
		}
	}
	runScenarios(t, all)
}

func TestRawRequestLines(t *testing.T) {
	b := setup(t)
	for line, code := range map[string]api.Code{
		"CONNECT example.com:443 HTTP/1.1":          api.CodeNotFound,
		"CONNECT /v1/track HTTP/1.1":                api.CodeMethodNotAllowed,
		"CONNECT //v1/track HTTP/1.1":               api.CodeNotFound,
		"OPTIONS * HTTP/1.1":                        api.CodeNotFound,
		"PRI * HTTP/1.1":                            api.CodeNotFound,
		"POST http://else.example/nothing HTTP/1.1": api.CodeNotFound,
		"TRACE /v1/track HTTP/1.1":                  api.CodeMethodNotAllowed,
	} {
		c := b.dial(t)
		send(t, c, line+"\r\nHost: x\r\n\r\n")
		wantRefusal(t, receive(t, c, "GET"), code)
	}
}

func TestMethodNotAllowedNamesTheMethods(t *testing.T) {
	b := setup(t)
	for path, want := range map[string]string{
		"/v1/track": "OPTIONS, POST", "/v1/alias": "POST", debugPath: "GET, HEAD", queryPath: "POST", "/metrics": "GET, HEAD",
	} {
		if got := b.do(t, request{method: "DELETE", path: path}).header.Get("Allow"); got != want {
			t.Errorf("%s allows %q, want %q", path, got, want)
		}
	}
}

func TestContentTypes(t *testing.T) {
	var all []scenario
	for kind, code := range map[string]api.Code{
		"": "", "application/json": "", "Application/JSON; charset=UTF-8": "", "text/plain": "", "text/plain;charset=UTF-8": "",
		"application/json; charset=utf8": "", "application/json; profile=x": "",
		"application/json; charset=latin1": api.CodeUnsupportedMediaType, "text/plain; charset=utf-16": api.CodeUnsupportedMediaType,
		"application/x-www-form-urlencoded": api.CodeUnsupportedMediaType, "application/xml": api.CodeUnsupportedMediaType,
		"text/html": api.CodeUnsupportedMediaType, "json": api.CodeUnsupportedMediaType, "application/json; charset": api.CodeUnsupportedMediaType,
	} {
		all = append(all, scenario{
			name: "type " + kind, code: code, status: 202, takes: code == "",
			request: request{path: "/v1/track", secret: "browser", body: "{}", headers: map[string]string{"Content-Type": kind}},
		})
	}
	for coding, code := range map[string]api.Code{
		"": "", "identity": "", "IDENTITY": "", "br": api.CodeUnsupportedMediaType, "deflate": api.CodeUnsupportedMediaType,
		"gzip, gzip": api.CodeUnsupportedMediaType, "zstd, gzip": api.CodeUnsupportedMediaType,
		"gzip": api.CodeInvalidJSON, "zstd": api.CodeInvalidJSON,
	} {
		all = append(all, scenario{
			name: "encoding " + coding, code: code, status: 202, takes: code == "",
			request: request{path: "/v1/track", secret: "browser", body: "{}", headers: map[string]string{"Content-Encoding": coding}},
		})
	}
	runScenarios(t, all)
}

func TestOrderOfRefusals(t *testing.T) {
	b := setup(t)
	bad := map[string]string{"Content-Type": "text/html", "Content-Encoding": "br"}
	large := strings.Repeat("x", trackLimit+1)
	wantRefusal(t, b.do(t, request{path: "/v1/track", secret: "nobody", body: large, headers: bad}), api.CodeUnauthenticated)
	wantRefusal(t, b.do(t, request{path: "/v1/track", secret: "ci", body: large, headers: bad}), api.CodeForbidden)
	wantRefusal(t, b.do(t, request{path: "/v1/track", secret: "slow", body: large, headers: bad}), api.CodeUnsupportedMediaType)
	r := b.do(t, request{path: "/v1/track", secret: "slow", body: large, headers: bad})
	wantRefusal(t, r, api.CodeRateLimited)
	if got := r.header.Get("Retry-After"); got != "10" {
		t.Errorf("Retry-After is %q, want the 10 seconds that one request takes at 0.1/s", got)
	}
	wantRefusal(t, b.do(t, request{path: "/v1/track", secret: "server", body: large}), api.CodePayloadTooLarge)
	wantRefusal(t, b.do(t, request{path: "/v1/track", secret: "server", body: large[:trackLimit]}), api.CodeInvalidJSON)
	if n := len(b.intake.taken()); n != 0 {
		t.Errorf("%d requests reached intake", n)
	}
}

func TestFaultsOfIntake(t *testing.T) {
	b := setup(t)
	for _, c := range []struct {
		err   error
		code  api.Code
		holds string
		after string
	}{
		{fault.New(api.CodeInternal, "nothing was accepted"), api.CodeInternal, "nothing was accepted", ""},
		{context.DeadlineExceeded, api.CodeInternal, "the server failed", ""},
		{fault.New(api.CodeUnavailable, "the clock jumped").With("applied", false), api.CodeUnavailable, `"applied":false`, "1"},
		{fault.New(api.CodeUnavailable, "busy").After(1500 * 1e6), api.CodeUnavailable, `"applied":"unknown"`, "2"},
		{fault.New(api.CodeForbidden, "historical"), api.CodeForbidden, "historical", ""},
		{fault.Field("sent_at", "unreadable"), api.CodeValidationFailed, `"field":"sent_at"`, ""},
		{fault.New(api.CodeRateLimited, "later").After(1), api.CodeRateLimited, "later", "1"},
		{fault.New("invented", "x").With("n", 1), api.CodeInternal, "x", ""},
		{fault.New(api.CodeInternal, "details").With("f", func() {}), api.CodeInternal, "details", ""},
	} {
		b.intake.track = func(context.Context, []byte) (api.TrackResponse, error) { return api.TrackResponse{}, c.err }
		r := b.do(t, request{path: "/v1/track", secret: "server", body: "{}"})
		wantRefusal(t, r, c.code)
		if !strings.Contains(r.body, c.holds) || r.header.Get("Retry-After") != c.after {
			t.Errorf("%v: Retry-After %q, %s", c.err, r.header.Get("Retry-After"), r.body)
		}
	}
}

// TestCatalogue holds every code to its promise, whoever raises it.
func TestCatalogue(t *testing.T) {
	b := setup(t)
	for _, spec := range api.Catalogue {
		b.intake.track = func(context.Context, []byte) (api.TrackResponse, error) {
			return api.TrackResponse{}, fault.New(spec.Code, "because").WithStatus(spec.Status)
		}
		r := b.do(t, request{path: "/v1/track", secret: "server", body: "{}"})
		e := wantSpec(t, r, spec)
		if e.Message != "because" {
			t.Errorf("%s: message %q", spec.Code, e.Message)
		}
		if (r.header.Get("WWW-Authenticate") != "") != (r.status == http.StatusUnauthorized) {
			t.Errorf("%s: WWW-Authenticate %q", spec.Code, r.header.Get("WWW-Authenticate"))
		}
	}
}
