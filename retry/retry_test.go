package retry_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// TestDecideTable states the action for every kind of request and every row
// of the published table: mutation, read, event, keyed.
func TestDecideTable(t *testing.T) {
	t.Parallel()
	const (
		unlisted = retry.Unlisted
		repeat   = retry.Repeat
		read     = retry.ReadFirst
		change   = retry.Change
		stop     = retry.Stop
	)
	refused := &tls.CertificateVerificationError{Err: errors.New("unknown authority")}
	for _, c := range []struct {
		name string
		o    retry.Outcome
		want [4]retry.Action
	}{
		{"cut short", retry.Outcome{Err: io.ErrUnexpectedEOF}, [4]retry.Action{read, repeat, repeat, repeat}},
		{"timed out", retry.Outcome{Err: context.DeadlineExceeded}, [4]retry.Action{read, repeat, repeat, repeat}},
		{"cancelled", retry.Outcome{Err: fmt.Errorf("post: %w", context.Canceled)}, [4]retry.Action{stop, stop, stop, stop}},
		{"untrusted", retry.Outcome{Err: fmt.Errorf("post: %w", refused)}, [4]retry.Action{stop, stop, stop, stop}},
		{"proxy 500", retry.Outcome{Status: 500}, [4]retry.Action{read, repeat, repeat, repeat}},
		{"proxy 502", retry.Outcome{Status: 502}, [4]retry.Action{read, repeat, repeat, repeat}},
		{"proxy 503", retry.Outcome{Status: 503}, [4]retry.Action{read, repeat, repeat, repeat}},
		{"proxy 504", retry.Outcome{Status: 504}, [4]retry.Action{read, repeat, repeat, repeat}},
		{"proxy 429", retry.Outcome{Status: 429}, [4]retry.Action{repeat, repeat, repeat, repeat}},
		{"proxy 413", retry.Outcome{Status: 413}, [4]retry.Action{change, change, change, change}},
		{"proxy 501", retry.Outcome{Status: 501}, [4]retry.Action{unlisted, unlisted, unlisted, unlisted}},
		{"redirect", retry.Outcome{Status: 307}, [4]retry.Action{unlisted, unlisted, unlisted, unlisted}},
		{"slow body", retry.Outcome{Status: 408, Code: "request_timeout"}, [4]retry.Action{repeat, repeat, repeat, repeat}},
		{"slow query", retry.Outcome{Status: 504, Code: "query_timeout"}, [4]retry.Action{change, change, change, change}},
		{"rate", retry.Outcome{Status: 429, Code: "rate_limited"}, [4]retry.Action{repeat, repeat, repeat, repeat}},
		{"quota", retry.Outcome{Status: 429, Code: "quota_exceeded"}, [4]retry.Action{stop, stop, stop, stop}},
		{"trial quota", retry.Outcome{Status: 429, Code: "trial_quota_exceeded"}, [4]retry.Action{stop, stop, stop, stop}},
		{"internal", retry.Outcome{Status: 500, Code: "internal"}, [4]retry.Action{read, repeat, repeat, repeat}},
		{"unavailable", retry.Outcome{Status: 503, Code: "unavailable"}, [4]retry.Action{read, repeat, repeat, repeat}},
		{"privacy job", retry.Outcome{Status: 409, Code: "privacy_job_active"}, [4]retry.Action{repeat, repeat, repeat, repeat}},
		{"conflict", retry.Outcome{Status: 409, Code: "idempotency_conflict"}, [4]retry.Action{read, read, read, read}},
		{"bad JSON", retry.Outcome{Status: 400, Code: "invalid_json"}, [4]retry.Action{stop, stop, stop, stop}},
		{"bad value", retry.Outcome{Status: 422, Code: "validation_failed"}, [4]retry.Action{stop, stop, stop, stop}},
		{"no key", retry.Outcome{Status: 401, Code: "unauthenticated"}, [4]retry.Action{stop, stop, stop, stop}},
		{"suspended", retry.Outcome{Status: 402, Code: "payment_required"}, [4]retry.Action{stop, stop, stop, stop}},
		{"poor", retry.Outcome{Status: 402, Code: "insufficient_credits"}, [4]retry.Action{stop, stop, stop, stop}},
		{"forbidden", retry.Outcome{Status: 403, Code: "forbidden"}, [4]retry.Action{stop, stop, stop, stop}},
		{"not found", retry.Outcome{Status: 404, Code: "not_found"}, [4]retry.Action{stop, stop, stop, stop}},
		{"method", retry.Outcome{Status: 405, Code: "method_not_allowed"}, [4]retry.Action{stop, stop, stop, stop}},
		{"large", retry.Outcome{Status: 413, Code: "payload_too_large"}, [4]retry.Action{change, change, change, change}},
		{"media type", retry.Outcome{Status: 415, Code: "unsupported_media_type"}, [4]retry.Action{stop, stop, stop, stop}},
		{"model", retry.Outcome{Status: 502, Code: "model_error"}, [4]retry.Action{stop, stop, stop, stop}},
		{"execution", retry.Outcome{Status: 504, Code: "execution_timeout"}, [4]retry.Action{stop, stop, stop, stop}},
		{"unheard of", retry.Outcome{Status: 503, Code: "of_the_future"}, [4]retry.Action{unlisted, unlisted, unlisted, unlisted}},
	} {
		for kind, want := range c.want {
			c.o.Kind = retry.Kind(kind)
			v := retry.Decide(c.o, noon)
			if v.Action != want || v.Retry != (want == retry.Repeat) || v.Reason == "" {
				t.Errorf("%s, kind %d: got %+v, want action %d", c.name, kind, v, want)
			}
		}
	}
}

// TestDecideShouldRetry: "false" always forbids; "true" only decides where
// the table does not know the code, or cannot know the outcome.
func TestDecideShouldRetry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    retry.Outcome
		want bool
	}{
		{retry.Outcome{Kind: retry.Event, Status: 500, Code: "internal", ShouldRetry: "false"}, false},
		{retry.Outcome{Kind: retry.Event, Status: 429, ShouldRetry: "False"}, false},
		{retry.Outcome{Kind: retry.Event, Status: 503, Code: "of_the_future", ShouldRetry: "true"}, true},
		{retry.Outcome{Kind: retry.Event, Status: 503, Code: "of_the_future", ShouldRetry: "perhaps"}, false},
		{retry.Outcome{Kind: retry.Mutation, Status: 503, Code: "unavailable", ShouldRetry: "true"}, true},
		{retry.Outcome{Kind: retry.Mutation, Status: 503, ShouldRetry: "true"}, false},
		{retry.Outcome{Kind: retry.Event, Status: 422, Code: "validation_failed", ShouldRetry: "true"}, false},
		{retry.Outcome{Kind: retry.Read, Status: 504, Code: "query_timeout", ShouldRetry: "true"}, false},
		{retry.Outcome{Kind: retry.Event, Err: io.EOF, ShouldRetry: "false"}, true},
	} {
		if v := retry.Decide(c.o, noon); v.Retry != c.want {
			t.Errorf("%+v: retry %v, want %v", c.o, v.Retry, c.want)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header string
		want   time.Duration
		ok     bool
	}{
		{"", 0, false},
		{"0", 0, true},
		{"7", 7 * time.Second, true},
		{" 7 ", 7 * time.Second, true},
		{"-7", 0, false},
		{"+7", 0, false},
		{"1.5", 0, false},
		{"soon", 0, false},
		{"99999999999999999999999", (1<<31 - 1) * time.Second, true},
		{"Fri, 01 May 2026 12:00:09 GMT", 9 * time.Second, true},
		{"Friday, 01-May-26 12:00:09 GMT", 9 * time.Second, true},
		{"Fri, 01 May 2026 11:59:00 GMT", 0, true},
	} {
		got, ok := retry.ParseRetryAfter(c.header, noon)
		if got != c.want || ok != c.ok {
			t.Errorf("%q: got %v, %v, want %v, %v", c.header, got, ok, c.want, c.ok)
		}
	}
}

func TestDecideWait(t *testing.T) {
	t.Parallel()
	v := retry.Decide(retry.Outcome{Kind: retry.Event, Status: 429, Code: "rate_limited", RetryAfter: "3"}, noon)
	if !v.Exact || v.Wait != 3*time.Second {
		t.Errorf("rate_limited: %+v", v)
	}
	v = retry.Decide(retry.Outcome{Kind: retry.Event, Status: 500, Code: "internal"}, noon)
	if v.Exact || v.Wait != 0 {
		t.Errorf("internal: %+v", v)
	}
	v = retry.Decide(retry.Outcome{Kind: retry.Event, Status: 422, RetryAfter: "3"}, noon)
	if v.Exact {
		t.Errorf("a refusal has a wait: %+v", v)
	}
}
