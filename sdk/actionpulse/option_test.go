package actionpulse_test

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// TestOptions: what is asked for is sent, told and kept to; no credential, key
// or URL is logged.
func TestOptions(t *testing.T) {
	t.Parallel()
	s := play(t, hangsUp, refuses(500, "internal", ""), says(200, something))
	var log strings.Builder
	var told []int
	policy := (&hasty{}).policy()
	policy.OnRetry = func(r retry.Retry) { told = append(told, r.Attempt) }
	c, err := actionpulse.New(s.URL, "apk_secret", actionpulse.WithRetry(policy), actionpulse.WithUserAgent("shop/1.4"),
		actionpulse.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), actionpulse.WithNewKey(func() string { return "minted" }))
	if err != nil {
		t.Fatal(err)
	}
	moved, err := c.Customers.TopUp(t.Context(), "ada", actionpulse.TopUp{})
	if err != nil || moved.IdempotencyKey != "minted" {
		t.Fatalf("%+v, %v", moved, err)
	}
	if got := s.requests()[0].header.Get("User-Agent"); !strings.HasPrefix(got, "shop/1.4 actionpulse-go/") {
		t.Errorf("User-Agent is %q", got)
	}
	if len(told) != 2 || strings.Count(log.String(), "level=WARN") != 2 || !strings.Contains(log.String(), "code=internal") {
		t.Errorf("told of %v, logged %s", told, log.String())
	}
	for _, secret := range []string{"secret", "minted", s.URL, "ada"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log: %s", secret, log.String())
		}
	}
}

// TestPreferredWait: the server is asked to answer while somebody listens.
func TestPreferredWait(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, succeeded))
	c := newClients(t, s.URL, actionpulse.WithHTTPClient(&http.Client{Timeout: 8 * time.Second}))
	if _, err := c.Executions.Execute(t.Context(), summary); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := newClients(t, s.URL).Executions.Execute(ctx, summary); err != nil {
		t.Fatal(err)
	}
	got := s.requests()
	if prefer := got[0].header.Get("Prefer"); prefer != "wait=4" {
		t.Errorf("half of the client's time is %s", prefer)
	}
	seconds, err := strconv.Atoi(strings.TrimPrefix(got[1].header.Get("Prefer"), "wait="))
	if err != nil || seconds > 10 || seconds < 5 {
		t.Errorf("half of the context's time is %s", got[1].header.Get("Prefer"))
	}
}

// TestLanes: clients that share lanes send one request at a time after one of
// them has failed, and all of them once one has succeeded.
func TestLanes(t *testing.T) {
	t.Parallel()
	s := play(t, refuses(503, "unavailable", ""), says(200, something))
	var h hasty
	var lanes retry.Lanes
	options := []actionpulse.Option{actionpulse.WithLanes(&lanes), actionpulse.WithRetry(h.policy())}
	first, second := newClients(t, s.URL, options...), newClients(t, s.URL, options...)
	if _, err := first.Intake.Track(t.Context(), withoutID); err == nil {
		t.Fatal("a batch without ids was repeated after a 503")
	}
	if _, err := second.Customers.Get(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if len(h.waits) == 0 {
		t.Error("the second client has not waited after the first one's failure")
	}
	waited := len(h.waits)
	if _, err := second.Customers.Get(t.Context(), "ada"); err != nil || len(h.waits) != waited {
		t.Errorf("a request after a success has waited: %v", err)
	}
}
