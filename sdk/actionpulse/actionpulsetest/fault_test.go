package actionpulsetest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/actionpulsetest"
)

const topupRoute = "POST /v1/customers/{external_user_id}/topup"

// topUp gives ten credits to ada, with the key invoice-1.
func topUp(t *testing.T, client *actionpulse.Client) (*actionpulse.Moved, error) {
	t.Helper()
	return client.Customers.TopUp(t.Context(), "ada", actionpulse.TopUp{CreditType: "main", Amount: "10"}, actionpulse.WithKey("invoice-1"))
}

// TestALostAnswerIsNotLostWork: the client repeats, and there is one movement.
func TestALostAnswerIsNotLostWork(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	client, waits := clientOf(t, s)
	s.Script(actionpulsetest.LoseAnswer().On(topupRoute).Times(2))
	moved, err := topUp(t, client)
	if err != nil || !moved.Replayed || moved.Balance.Posted != "10" {
		t.Fatalf("%+v, %v", moved, err)
	}
	if m := s.Movements("ada"); len(m) != 1 || m[0].ID != moved.Movement.ID {
		t.Errorf("movements %+v, want the one", m)
	}
	requests := s.Requests()
	if len(requests) != 3 || s.Attempts("invoice-1") != 3 || len(waits.list) != 2 {
		t.Fatalf("%d requests, %d attempts, waits %v", len(requests), s.Attempts("invoice-1"), waits.list)
	}
	for i, r := range requests {
		status := 0
		if i == 2 {
			status = http.StatusOK
		}
		if r.Key != "invoice-1" || r.Attempt != i+1 || r.Route != topupRoute || r.Status != status || string(r.Body) != string(requests[0].Body) {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

// TestNothingIsDoneWithoutAConnection: before the last attempt there is nothing.
func TestNothingIsDoneWithoutAConnection(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	client, _ := clientOf(t, s)
	s.Script(actionpulsetest.RefuseConnection().Times(3))
	moved, err := topUp(t, client)
	if err != nil || moved.Replayed || s.Attempts("invoice-1") != 4 || len(s.Movements("")) != 1 {
		t.Errorf("%+v, %v, %d attempts", moved, err, s.Attempts("invoice-1"))
	}
}

// TestScriptedAnswers: each is what it says, in its order, and on its route only.
func TestScriptedAnswers(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	client, waits := clientOf(t, s)
	s.Script(
		actionpulsetest.Answer(http.StatusTooManyRequests, api.CodeRateLimited, nil).RetryAfter(6500*time.Millisecond).On(topupRoute),
		actionpulsetest.Answer(http.StatusServiceUnavailable, api.CodeUnavailable, map[string]any{"applied": false}).On(topupRoute),
		actionpulsetest.Answer(http.StatusBadGateway, "", nil).RetryAfter(3*time.Second).On(topupRoute),
	)
	if _, err := client.Customers.Get(t.Context(), "nobody"); err == nil { // another route
		t.Error("nobody was found")
	}
	if _, err := topUp(t, client); err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{7 * time.Second, time.Second, 3 * time.Second}
	if len(waits.list) != 3 || waits.list[0] != want[0] || waits.list[1] != want[1] || waits.list[2] != want[2] {
		t.Errorf("waits %v, want %v", waits.list, want)
	}
}

// TestScriptedCodes: what follows from the code of the catalogue, what a test adds,
// and that a code which is not in it says nothing by itself.
func TestScriptedCodes(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	for _, c := range []struct {
		fault     *actionpulsetest.Fault
		part      string
		retry     string
		waitsFor  string
		otherwise string
	}{
		{actionpulsetest.Answer(429, api.CodeRateLimited, nil), `"retryable":true`, "true", "1", ""},
		{actionpulsetest.Answer(429, "quota_exceeded", map[string]any{"resets_at": "2026-06-01T00:00:00.000Z"}), `"retryable":false`, "false", "", "applied"},
		{actionpulsetest.Answer(409, "privacy_job_active", map[string]any{"retryable": true}), `"retryable":true`, "true", "", "applied"},
		{actionpulsetest.Answer(503, api.CodeUnavailable, nil), `"applied":"unknown"`, "false", "1", ""},
		{actionpulsetest.Answer(503, api.CodeUnavailable, map[string]any{"applied": false}), `"applied":false`, "true", "1", "unknown"},
		{actionpulsetest.Answer(500, api.CodeInternal, nil), `"internal"`, "false", "", "applied"},
		{actionpulsetest.Answer(402, api.CodePaymentRequired, nil), `"payment_required"`, "false", "", "applied"},
		{actionpulsetest.Answer(504, api.CodeQueryTimeout, map[string]any{"hint": "the range"}), `"hint":"the range"`, "false", "", "applied"},
	} {
		s.Script(c.fault)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/v1/customers/ada", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		body, h := string(content), response.Header
		if !strings.Contains(body, c.part) || c.otherwise != "" && strings.Contains(body, c.otherwise) ||
			h.Get("X-Should-Retry") != c.retry || h.Get("Retry-After") != c.waitsFor {
			t.Errorf("%d %s, X-Should-Retry %s, Retry-After %s", response.StatusCode, body, h.Get("X-Should-Retry"), h.Get("Retry-After"))
		}
	}
	if len(s.Requests()) != 8 {
		t.Errorf("%d requests", len(s.Requests()))
	}
}

// TestUnkeyedWorkIsNotRepeated: a client must not repeat it by itself, and the
// fake shows that it was done.
func TestUnkeyedWorkIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	app, err := actionpulse.NewApp(s.URL, actionpulse.WithHTTPClient(s.Client()), actionpulse.WithTokens(api.Tokens{
		AccessToken: s.AccessToken, RefreshToken: s.RefreshToken,
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.Script(actionpulsetest.LoseAnswer().On("POST /api/v1/projects/{id}/release-markers"))
	_, err = app.Markers.Create(t.Context(), s.ProjectID, api.MarkerContent{Version: "1"})
	refused, ok := errors.AsType[*actionpulse.Error](err)
	if !ok || refused.Applied != actionpulse.AppliedUnknown || len(s.Requests()) != 1 || len(s.Markers()) != 1 {
		t.Errorf("%v, %d requests, %d markers", err, len(s.Requests()), len(s.Markers()))
	}
}

// TestAClientThatLeavesDoesNotStopTheWork: it is done, and nobody hears of it.
func TestAClientThatLeavesDoesNotStopTheWork(t *testing.T) {
	t.Parallel()
	var s *actionpulsetest.Server
	failures := failuresOf(func(own *actionpulsetest.Server) {
		s = own
		ctx, cancel := context.WithCancel(t.Context())
		s.Script(actionpulsetest.Delay(time.Hour).Then(cancel))
		client, err := actionpulse.New(s.URL, s.ProjectKey, actionpulse.WithHTTPClient(s.Client()))
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := client.Customers.TopUp(ctx, "ada", actionpulse.TopUp{CreditType: "main", Amount: "10"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that it was cancelled", err)
		}
	})
	if len(failures) > 0 || len(s.Movements("ada")) != 1 {
		t.Errorf("%v, movements %+v", failures, s.Movements("ada"))
	}
}

// TestADelayComesFirst: the answer is the usual one, and not before.
func TestADelayComesFirst(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	const delay = 30 * time.Millisecond
	s.Script(actionpulsetest.Delay(delay), actionpulsetest.Answer(http.StatusBadGateway, "", nil).Delay(delay))
	for _, want := range []int{http.StatusOK, http.StatusBadGateway} {
		began := time.Now()
		if status, body := ask(t, s, "GET /v1/customers", s.ProjectKey, ""); status != want {
			t.Errorf("%d %s, want %d", status, body, want)
		}
		if took := time.Since(began); took < delay {
			t.Errorf("the answer came after %s", took)
		}
	}
}

// TestAnExpiredTokenIsRefreshedOnce: 401 token_expired, a refresh, and the call
// anew.
func TestAnExpiredTokenIsRefreshedOnce(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	app, err := actionpulse.NewApp(s.URL, actionpulse.WithHTTPClient(s.Client()), actionpulse.WithTokens(api.Tokens{
		AccessToken: s.AccessToken, RefreshToken: s.RefreshToken,
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.ExpireAccessTokens()
	if _, err := app.Markers.List(t.Context(), s.ProjectID, actionpulse.ListMarkers{}); err != nil {
		t.Fatal(err)
	}
	var statuses []int
	for _, r := range s.Requests() {
		statuses = append(statuses, r.Status)
	}
	if len(statuses) != 3 || statuses[0] != 401 || statuses[1] != 200 || statuses[2] != 200 || s.Requests()[1].Route != "POST /api/v1/auth/refresh" {
		t.Errorf("%v", statuses)
	}
	if app.Tokens().AccessToken == s.AccessToken {
		t.Error("the client kept the old token")
	}
}
