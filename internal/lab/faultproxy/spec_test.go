package faultproxy_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

func TestParseFaults(t *testing.T) {
	t.Parallel()
	got, err := faultproxy.ParseFaults("drop-request=0.05, drop-answer=0.06,reset=0.01,truncate=0.02,duplicate=0.03,reorder=0.04:3s,429=0.1:5s,500=0.11,503=0.12,delay=0.5:20ms")
	want := faultproxy.Faults{
		DropRequest: 0.05, DropAnswer: 0.06, Reset: 0.01, Truncate: 0.02, Duplicate: 0.03, Reorder: 0.04, MaxReorder: 3 * time.Second,
		TooMany: 0.1, RetryAfter: 5 * time.Second, ServerError: 0.11, Unavailable: 0.12, Delay: 0.5, MaxDelay: 20 * time.Millisecond,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := faultproxy.ParseFaults(""); err != nil {
		t.Errorf("no faults: %v", err)
	}
	for _, wrong := range []string{"drop", "flood=0.1", "500=x", "500=-0.1", "500=1.1", "500=0.1:2s", "delay=0.1:soon", "delay=0.1:-1s", "500=0.6,503=0.6"} {
		if f, err := faultproxy.ParseFaults(wrong); err == nil {
			t.Errorf("%q: took %+v", wrong, f)
		}
	}
}

func TestParseMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, method, path string
		want                  bool
	}{
		{"/v1/track", "POST", "/v1/track", true},
		{"/v1/track", "GET", "/v1/track", true},
		{"/v1/track", "POST", "/v1/track/", false},
		{"POST /v1/*", "POST", "/v1/customers/a/charge", true},
		{"post /v1/*", "POST", "/v1/", true},
		{"POST /v1/*", "GET", "/v1/track", false},
		{"POST /v1/*", "POST", "/api/v1/track", false},
		{"/v1/*/charge", "POST", "/v1/customers/a/charge", true},
		{"/v1/*/charge", "POST", "/v1/customers/a/charges", false},
		{"*track*", "POST", "/v1/track", true},
	} {
		match, err := faultproxy.ParseMatch([]string{"/nowhere", c.pattern})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://host"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := match(r); got != c.want {
			t.Errorf("%q, %s %s: %v", c.pattern, c.method, c.path, got)
		}
	}
	if _, err := faultproxy.ParseMatch([]string{"POST"}); err == nil {
		t.Error("took a pattern without a path")
	}
}
