package http_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	httpstep "github.com/actionpulse/actionpulse/internal/flow/step/http"
)

// TestShown: of a value only credentials in headers are missing; what cannot
// be read is not shown.
func TestShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, want string }{
		{`{"body":{"token":"b"},"headers":{"date":"x","set-cookie":"s"},"status":200}`, `{"body":{"token":"b"},"headers":{"date":"x","set-cookie":"[redacted]"},"status":200}`},
		{`{"headers":{"X-AUTH":"s","access-token":["s"],"x-aws-credential":3,"x-session-id":"s","signature-input":"s","x-passwd":"s","my-secret":null,"x-key":"s","x-sig":"a"}}`, `{"headers":{"X-AUTH":"[redacted]","access-token":"[redacted]","my-secret":"[redacted]","signature-input":"[redacted]","x-aws-credential":"[redacted]","x-key":"[redacted]","x-passwd":"[redacted]","x-session-id":"[redacted]","x-sig":"a"}}`},
		{`{"headers":{"idempotency-key":"a","etag":"b"}}`, `{"headers":{"etag":"b","idempotency-key":"a"}}`},
		{`{"headers":{"location":"https://u:s@x/a?b=1&code_token=s#c"}}`, `{"headers":{"location":"https://[redacted]@x/a?b=1&code_token=[redacted]#c"}}`},
		{`{"headers":"s"}`, `{"headers":"[redacted]"}`},
		{`{"text": "a", "n": 1.50}`, `{"text": "a", "n": 1.50}`},
		{`"[redacted]"`, `"[redacted]"`},
		{`null`, `null`},
		{``, ``},
		{`{"headers":{"set-cookie":"s"}`, `"[redacted]"`},
		{`{"headers":{},"headers":{"set-cookie":"s"}}`, `"[redacted]"`},
	} {
		if got := string(httpstep.Shown([]byte(c.value))); got != c.want {
			t.Errorf("%s: %s", c.value, got)
		}
	}
}

// TestTraceOfRequests: a header that is not known to be harmless is not shown,
// whatever its name, nor is a parameter whose name tells of a credential. The
// server gets them all.
func TestTraceOfRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	result, e := run(t, fmt.Sprintf(`{"url": "%s/a%%20b?api_key=sesame&a=b&X-Amz-Signature=sesame&%%74oken=sesame&sig=sesame&%%zz=sesame&flag", "query": {"session": ["sesame", "sesame"], "n": "1 2"},
		"headers": {"Accept-Language": "de", "If-Match": "x", "Range": "bytes=0-1", "X-Request-Id": "r", "X-Team": "sesame", "Accept-Token": "sesame", "User-Agent": "me"}}`, s.URL))
	if e != nil {
		t.Fatal(e)
	}
	if r := s.seen[0]; r.Header.Get("X-Team") != "sesame" || r.Header.Get("Accept-Token") != "sesame" || strings.Count(r.RequestURI, "sesame") != 7 {
		t.Errorf("%s %v", r.RequestURI, r.Header)
	}
	var got map[string]any
	if err := json.Unmarshal(result.Call.Request, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"method": "GET",
		"url":    s.URL + "/a%20b?api_key=[redacted]&a=b&X-Amz-Signature=[redacted]&%74oken=[redacted]&sig=[redacted]&%zz=[redacted]&flag&n=1+2&session=[redacted]&session=[redacted]",
		"headers": map[string]any{
			"accept-language": "de", "if-match": "x", "range": "bytes=0-1", "x-request-id": "r", "user-agent": "me", "x-team": "[redacted]", "accept-token": "[redacted]",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTraceOfAnswers: where an answer leads is shown without what opens it.
func TestTraceOfAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "//u:sesame@x?a=1&access_token=sesame#id_token=sesame")
		w.Header().Set("X-Session", "sesame")
		w.Header().Set("Idempotency-Key", "k")
		w.WriteHeader(http.StatusFound)
	})
	_, e := run(t, fmt.Sprintf(`{"url": %q}`, s.URL))
	if e == nil || e.Call == nil {
		t.Fatal(e)
	}
	var got struct{ Headers map[string]string }
	if err := json.Unmarshal(e.Call.Response, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"location": "//[redacted]@x?a=1&access_token=[redacted]#id_token=[redacted]", "x-session": "[redacted]", "idempotency-key": "k", "date": "x", "content-length": "0",
	}
	if diff := cmp.Diff(want, got.Headers); diff != "" {
		t.Error(diff)
	}
}

// TestFailuresByMethod: after a 500 the server may have done its work, so only
// what does no harm twice is repeated; that it was too much for it is no work.
func TestFailuresByMethod(t *testing.T) {
	t.Parallel()
	for method, again := range map[string]bool{"GET": true, "HEAD": true, "PUT": true, "DELETE": true, "OPTIONS": true, "POST": false, "PATCH": false} {
		for status, want := range map[int]bool{408: true, 429: true, 500: again, 503: true} {
			for _, said := range []string{"", "true"} {
				s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("X-Should-Retry", said)
					w.WriteHeader(status)
				})
				if _, e := run(t, fmt.Sprintf(`{"method": %q, "url": %q}`, method, s.URL)); e == nil || e.Retryable != want || e.Outcome != 0 {
					t.Errorf("%s, %d, %q: %+v", method, status, said, e)
				}
			}
		}
	}
}
