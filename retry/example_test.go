package retry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// An http.Client whose requests are repeated by the table. The server fails
// once and then has done the work.
func ExampleTransport() {
	failures := 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failures--; failures >= 0 {
			w.Header().Set("X-Should-Retry", "true")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"error":{"code":"unavailable","details":{"applied":"unknown"}}}`) //nolint:errcheck // an example
			return
		}
		fmt.Println("key:", r.Header.Get("Idempotency-Key"))
	}))
	defer server.Close()

	client := &http.Client{Transport: &retry.Transport{Policy: retry.Policy{
		Delays: retry.Delays{First: time.Millisecond}, // a second, if it is not set
		OnRetry: func(r retry.Retry) {
			fmt.Println("again:", r.Outcome.Status, r.Outcome.Code, "applied:", r.Outcome.Applied)
		},
	}}}
	request, err := http.NewRequest("POST", server.URL, strings.NewReader(`{"credit_type": "main", "amount": "2"}`))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Idempotency-Key", "order-42:email")
	response, err := client.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close() //nolint:errcheck // an example
	fmt.Println(response.StatusCode, "after", retry.Attempts(response), "attempts")
	// Output:
	// again: 503 unavailable applied: unknown
	// key: order-42:email
	// 200 after 2 attempts
}

// A batch of events has no Idempotency-Key; that each item has an id, and so may
// be sent again, is for the caller to say.
func ExampleWithKind() {
	body := strings.NewReader(`{"events": [{"event_id": "0198c0de-0000-7000-8000-000000000001", "event": "signed_up", "user_id": "ada"}]}`)
	ctx := retry.WithKind(context.Background(), retry.Event)
	request, err := http.NewRequestWithContext(ctx, "POST", "http://127.0.0.1:8080/v1/track", body)
	if err != nil {
		panic(err)
	}
	fmt.Println(retry.KindOf(request) == retry.Event)
	// Output: true
}

// What is not made by an http.Client is repeated by Do.
func ExampleDo() {
	answers := []retry.Outcome{{Kind: retry.Keyed, Err: io.ErrUnexpectedEOF}, {Kind: retry.Keyed, Status: http.StatusOK}}
	policy := retry.Policy{Delays: retry.Delays{First: time.Millisecond}}
	n, err := retry.Do(context.Background(), policy, func(context.Context) (int, retry.Outcome) {
		o := answers[0]
		answers = answers[1:]
		return len(answers), o
	})
	fmt.Println(n, err)
	// Output: 0 <nil>
}

// The table can be asked without sending anything.
func ExampleDecide() {
	v := retry.Decide(retry.Outcome{Kind: retry.Mutation, Status: 500, Code: "internal"}, time.Now())
	fmt.Println(v.Retry, v.Action == retry.ReadFirst)
	v = retry.Decide(retry.Outcome{Kind: retry.Event, Status: 429, Code: "rate_limited", RetryAfter: "7"}, time.Now())
	fmt.Println(v.Retry, v.Wait)
	// Output:
	// false true
	// true 7s
}
