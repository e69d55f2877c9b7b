package http_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	httpstep "github.com/actionpulse/actionpulse/internal/flow/step/http"
	"github.com/actionpulse/actionpulse/internal/flow/step/steptest"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

var now = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

// server keeps what it was asked.
type server struct {
	URL string

	mu   sync.Mutex
	seen []*http.Request
	body []string
}

func serve(t *testing.T, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen, s.body = append(s.seen, r), append(s.body, string(body))
		s.mu.Unlock()
		w.Header().Set("Date", "x")
		handle(w, r)
	}))
	t.Cleanup(inner.Close)
	s.URL = inner.URL
	return s
}

func (s *server) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := []string{}
	for _, r := range s.seen {
		keys = append(keys, r.Header.Values("Idempotency-Key")...)
	}
	return keys
}

func kind() step.Type {
	return httpstep.New(callhttp.New(callhttp.Params{AllowPrivate: true, Agent: "test"}))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Add("X-Many", "one")
		w.Header().Add("X-Many", "two")
		_, _ = io.WriteString(w, `{"n": 3, "list": [1.5, null]}`)
	})
	members := fmt.Sprintf
	steptest.Run(t, steptest.Case{
		Type: kind(), Effect: step.Calls, Input: `{"user": "ada", "tags": ["a", "b"], "bad": "a\u0001b", "list": []}`,
		Members: members(`{"method": "POST", "url": "%s/users/${input.user}?a=1", "headers": {"X-Team": "${input.user}", "X-N": 3}, "query": {"tag": "${input.tags}", "none": null},
			"body": {"name": "${input.user}"}, "timeout": "5s", "retries": 1, "on_interrupt": "retry"}`, s.URL),
		Want: `{"status": 200, "headers": {"content-type": "application/json; charset=utf-8", "x-many": "one", "date": "x", "content-length": "29"},
			"body": {"n": 3, "list": [1.5, null]}, "encoding": "json"}`,
		Refused: []string{
			`{}`, `{"url": ""}`, `{"url": 3}`, `{"url": "http://x", "method": "post"}`, `{"url": "http://x", "headers": {"a b": "c"}}`,
			`{"url": "http://x", "headers": {"a": null}}`, `{"url": "http://x", "query": {"a": {}}}`, `{"url": "http://x", "success": []}`,
			`{"url": "http://x", "success": [100]}`, `{"url": "http://x", "headers": "${input}"}`,
		},
		Broken: map[string]string{
			`{"url": "ftp://x"}`: "steps[0].url", `{"url": "http://"}`: "steps[0].url", `{"url": "http://a:b@x/"}`: "steps[0].url", `{"url": "http://x/#a"}`: "steps[0].url",
			`{"url": "http://x", "body": 1}`: "steps[0].body", `{"url": "http://x", "method": "HEAD", "body": null}`: "steps[0].body",
			`{"url": "http://x", "headers": {"idempotency-KEY": "a"}}`: "steps[0].headers.idempotency-KEY", `{"url": "http://x", "headers": {"Host": "a"}}`: "steps[0].headers.Host",
			`{"url": "http://x", "headers": {"Idempotency_Key": "a"}}`: "steps[0].headers.Idempotency_Key", `{"url": "http://x", "headers": {"TRANSFER_ENCODING": "a"}}`: "steps[0].headers.TRANSFER_ENCODING",
			`{"url": "http://x", "headers": {"a": "1", "A": "2"}}`: "steps[0].headers", `{"url": "${"}`: "steps[0].url",
		},
		Failing: []string{
			`{"url": "${input.user}"}`, `{"url": "${input.list}"}`, members(`{"url": "%s", "headers": {"a": "${input.bad}"}}`, s.URL),
			members(`{"url": "%s", "headers": {"a": "${input.list}"}}`, s.URL), members(`{"url": "%s", "query": {"a": "${[input.list]}"}}`, s.URL),
			members(`{"url": "%s", "method": "POST", "headers": {"Content-Type": "text/plain"}, "body": {}}`, s.URL), members(`{"url": "%s", "success": [201]}`, s.URL),
		},
		Keys: s.keys,
	})
}

// run runs one step, with what it is called with beside its own server.
func run(t *testing.T, members string) (step.Result, *step.Error) {
	t.Helper()
	own, err := template.Decode([]byte(members))
	if err != nil {
		t.Fatal(err)
	}
	program, err := kind().Compile(&step.Compiler{Path: "steps[0]", Members: own.(map[string]any), Step: &step.Step{}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := program.Run(t.Context(), &step.Run{
		Scope: template.NewScope(map[string]any{}, nil), Key: "the key", Attempt: 1, Now: func() time.Time { return now }, Emit: func(string) {},
	})
	if err == nil {
		return result, nil
	}
	e, ok := errors.AsType[*step.Error](err)
	if !ok {
		t.Fatalf("%v is no step.Error", err)
	}
	return result, e
}

// TestRequest: what is sent, to the letter.
func TestRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	for i, c := range []struct{ members, method, uri, kind, body string }{
		{`{"url": "URL/a%20b?x=1", "query": {"y": "ü&", "b": [1, true, "z"], "n": null}}`, "GET", "/a%20b?x=1&b=1&b=true&b=z&y=%C3%BC%26", "", ""},
		{`{"url": "URL", "method": "POST", "body": {"b": 1, "a": "<ü>"}}`, "POST", "/", "application/json", `{"a":"<ü>","b":1}`},
		{`{"url": "URL", "method": "POST"}`, "POST", "/", "", ""},
		{`{"url": "URL", "method": "PUT", "body": null}`, "PUT", "/", "application/json", "null"},
		{`{"url": "URL", "method": "PATCH", "body": "a=b", "headers": {"content-type": "application/x-www-form-urlencoded"}}`, "PATCH", "/", "application/x-www-form-urlencoded", "a=b"},
		{`{"url": "URL", "method": "POST", "body": "a", "headers": {"Content-Type": "application/vnd.x+json; v=1"}}`, "POST", "/", "application/vnd.x+json; v=1", `"a"`},
		{`{"url": "URL", "method": "DELETE"}`, "DELETE", "/", "", ""},
	} {
		if _, e := run(t, strings.ReplaceAll(c.members, "URL", s.URL)); e != nil {
			t.Errorf("%s: %v", c.members, e)
			continue
		}
		r := s.seen[i]
		if r.Method != c.method || r.RequestURI != c.uri || r.Header.Get("Content-Type") != c.kind || s.body[i] != c.body || r.Header.Get("Idempotency-Key") != "the key" {
			t.Errorf("%s: %s %s %v %s", c.members, r.Method, r.RequestURI, r.Header, s.body[i])
		}
	}
}

// TestOutcomes: what is known after each end of a call.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		retryAfter string
		want       step.Error
	}{
		{302, "", step.Error{Message: "the answer was 302: no redirect is followed"}},
		{400, "", step.Error{Message: "the answer was 400"}},
		{401, "", step.Error{Message: "the answer was 401"}},
		{404, "", step.Error{Message: "the answer was 404"}},
		{408, "", step.Error{Message: "the answer was 408", Retryable: true}},
		{409, "", step.Error{Message: "the answer was 409"}},
		{429, "5", step.Error{Message: "the answer was 429", Retryable: true, After: 5 * time.Second}},
		{429, "Fri, 01 May 2026 10:00:09 GMT", step.Error{Message: "the answer was 429", Retryable: true, After: 9 * time.Second}},
		{500, "", step.Error{Message: "the answer was 500"}},
		{501, "", step.Error{Message: "the answer was 501"}},
		{502, "", step.Error{Message: "the answer was 502", Outcome: step.Unknown, Retryable: true}},
		{503, "1", step.Error{Message: "the answer was 503", Retryable: true, After: time.Second}},
		{504, "", step.Error{Message: "the answer was 504", Outcome: step.Unknown, Retryable: true}},
		{524, "", step.Error{Message: "the answer was 524", Outcome: step.Unknown}},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", c.retryAfter)
			w.Header().Set("X-Request-Id", "req_1")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, "why")
		})
		_, e := run(t, fmt.Sprintf(`{"method": "POST", "url": %q}`, s.URL))
		if e == nil {
			t.Errorf("%d: a success", c.status)
			continue
		}
		if e.Message != c.want.Message || e.Outcome != c.want.Outcome || e.Retryable != c.want.Retryable || e.After != c.want.After || e.Code != "step_failed" {
			t.Errorf("%d: %+v", c.status, e)
		}
		if e.Call == nil || e.Call.Status != c.status || e.Call.ProviderRequestID != "req_1" || !strings.Contains(string(e.Call.Response), `"body":"why"`) {
			t.Errorf("%d: %+v", c.status, e.Call)
		}
		if n := len(s.keys()); n != 1 {
			t.Errorf("%d: %d calls", c.status, n)
		}
		// The flow says what a success is.
		if result, e := run(t, fmt.Sprintf(`{"method": "POST", "url": %q, "success": [201, %d]}`, s.URL, c.status)); e != nil || result.Value["status"] != int64(c.status) {
			t.Errorf("%d, declared: %+v", c.status, e)
		}
	}
}

func TestCallsThatAreCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		want   step.Error
	}{
		{"unanswered", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, step.Error{Outcome: step.Unknown, Retryable: true, Message: "the connection ended without a whole answer"}},
		{"in the body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "x")
		}, step.Error{Outcome: step.Unknown, Retryable: true, Message: "the connection ended without a whole answer"}},
		{"in the body of a refusal", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "x")
		}, step.Error{Message: "the answer was 404"}},
		{"too large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }, step.Error{Message: "the answer is larger than 1 MiB"}},
	} {
		s := serve(t, c.handle)
		if _, e := run(t, fmt.Sprintf(`{"url": %q}`, s.URL)); e == nil || e.Message != c.want.Message || e.Outcome != c.want.Outcome || e.Retryable != c.want.Retryable {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
	if _, e := run(t, `{"url": "http://nowhere.invalid"}`); e == nil || e.Outcome != step.NotSent || !e.Retryable || e.Call == nil || e.Call.Status != 0 {
		t.Errorf("%+v", e)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, body, want, encoding string }{
		{"application/json", `{"a": 1}`, `{"a":1}`, "json"},
		{"application/problem+json", `[1.0]`, `[1]`, "json"},
		{"application/json", `{"a": `, `"{\"a\": "`, "text"},
		{"text/plain", `{"a": 1}`, `"{\"a\": 1}"`, "text"},
		{"application/octet-stream", "\xff\x00", `"/wA="`, "base64"},
		{"application/json", "", `null`, "none"},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			_, _ = io.WriteString(w, c.body)
		})
		result, e := run(t, fmt.Sprintf(`{"url": %q}`, s.URL))
		if e != nil {
			t.Fatal(e)
		}
		body, err := template.Encode(result.Value["body"])
		if err != nil || string(body) != c.want || result.Value["encoding"] != c.encoding {
			t.Errorf("%s %q: %s %v, %v", c.kind, c.body, body, result.Value["encoding"], err)
		}
	}
}

// TestTrace: what is kept says what was said, but for what opens doors.
func TestTrace(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Set-Cookie", "sesame=1") })
	result, e := run(t, fmt.Sprintf(`{"method": "POST", "url": %q, "headers": {"Authorization": "Bearer sesame", "X-Api-Key": "sesame", "X-Team": "a"}, "body": {"n": 1}}`, s.URL))
	if e != nil {
		t.Fatal(e)
	}
	if s.seen[0].Header.Get("Authorization") != "Bearer sesame" {
		t.Error("it was not sent")
	}
	if all := string(result.Call.Request) + string(result.Call.Response); strings.Contains(all, "sesame") {
		t.Errorf("%s", all)
	}
	var got map[string]any
	if err := json.Unmarshal(result.Call.Request, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"method": "POST", "url": s.URL, "body": map[string]any{"n": 1.0},
		"headers": map[string]any{"authorization": "[redacted]", "x-api-key": "[redacted]", "x-team": "[redacted]", "content-type": "application/json"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if result.Value["headers"].(map[string]any)["set-cookie"] != "sesame=1" {
		t.Error("the flow does not see the header")
	}
}
