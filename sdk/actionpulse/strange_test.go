package actionpulse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// rawly answers with bytes of any kind, and leaves the connection open.
// $KEY is what was sent as the credential.
func rawly(t *testing.T, answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = connection.Close() })
		_, _ = io.WriteString(connection, strings.ReplaceAll(answer, "$KEY", r.Header.Get("Authorization")))
	}
}

// charge is a call of a client with the server key of the tracker's tests.
func charge(t *testing.T, server string, options ...actionpulse.Option) error {
	t.Helper()
	c, err := actionpulse.New(server, serverKey, append(options, actionpulse.WithRetry((&hasty{}).policy()))...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Customers.Charge(t.Context(), "ada", actionpulse.Move{CreditType: "main", Amount: "1"})
	return err
}

// trackOne tracks an event, and returns what Close says when sending rests, or
// when that takes too long.
func trackOne(t *testing.T, server string, log io.Writer, limit time.Duration) error {
	t.Helper()
	tracker, err := actionpulse.NewTracker(server, serverKey, actionpulse.TrackerOptions{
		Policy: (&hasty{}).policy(), Logger: slog.New(slog.NewTextHandler(log, nil)), HTTPClient: &http.Client{Transport: &http.Transport{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	track(t, tracker, "e")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return tracker.Close(ctx)
}

// TestLeavesHTTP: the body of an answer 101 ends with nothing, and nobody waits
// for its end.
func TestLeavesHTTP(t *testing.T) {
	t.Parallel()
	s := play(t, rawly(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"))
	if e := asError(t, charge(t, s.URL)); e.Applied != actionpulse.AppliedUnknown || !holds(e, "another protocol") {
		t.Errorf("a client: %v", e)
	}
	if err := trackOne(t, s.URL, io.Discard, time.Minute); !holds(err, "another protocol") {
		t.Errorf("a tracker: %v", err)
	}
}

// TestSendsBackTheKey: a key that an answer repeats is in no error and in no
// line of the log.
func TestSendsBackTheKey(t *testing.T) {
	t.Parallel()
	envelope := `{"error":{"code":"$KEY","message":"$KEY","request_id":"$KEY","details":{"x":"$KEY"}}}`
	for _, answer := range []string{
		"$KEY\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: $KEY\r\n\r\n",
		"HTTP/1.1 200 $KEY\r\nContent-Type: $KEY\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 403 $KEY\r\nContent-Length: 0\r\nX-Request-Id: $KEY\r\n\r\n",
		"HTTP/1.1 307 no\r\nLocation: http://%zz/$KEY\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 403 no\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(envelope),
		"HTTP/1.1 500 no\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(envelope),
		"HTTP/1.1 202 no\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunk(`{"rejected":[{"index":0,"code":"$KEY","message":"$KEY"}]}`),
	} {
		s := play(t, rawly(t, answer))
		var log bytes.Buffer
		err := charge(t, s.URL, actionpulse.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		e := asError(t, err)
		if text := fmt.Sprintf("%v %+v %s", err, *e, e.Raw); strings.Contains(text, serverKey) {
			t.Errorf("%q: the error says %s", answer, text)
		}
		err = trackOne(t, s.URL, &log, time.Second) // one answer has no end
		if text := fmt.Sprint(err) + log.String(); strings.Contains(text, serverKey) {
			t.Errorf("%q: the tracker says %s", answer, text)
		}
	}
}

// chunk is a body in one chunk, whose length counts the credential in place of
// $KEY.
func chunk(text string) string {
	sent := strings.ReplaceAll(text, "$KEY", "Bearer "+serverKey)
	return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(sent), text)
}

// TestSaysNothing: a success in which nothing is said of what was asked for is
// none of the server's, and not taken for one.
func TestSaysNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{}`, `null`, `{"status":7}`, `{"ok":true}`, `<html>`} {
		c := hurried(t, play(t, says(200, answer)).URL)
		_, charged := c.Customers.Charge(t.Context(), "ada", actionpulse.Move{CreditType: "main", Amount: "1"})
		_, executed := c.Executions.Execute(t.Context(), summary)
		_, tracked := c.Intake.Track(t.Context(), api.TrackRequest{Events: []api.TrackItem{{EventID: new(one)}}})
		for _, err := range []error{charged, executed, tracked} {
			if e := asError(t, err); e.Applied != actionpulse.AppliedUnknown || e.Status != 200 || !holds(err, "not in the form of the API") {
				t.Errorf("%s: %v", answer, err)
			}
		}
		for _, err := range c.Movements.Export(t.Context(), actionpulse.MovementFilter{}) {
			if err == nil {
				t.Errorf("%s: the export yields a movement that says nothing", answer)
			}
		}
	}
	c := hurried(t, play(t, says(200, `<html>`)).URL)
	err := c.Intake.Alias(t.Context(), api.AliasRequest{AnonID: "a", UserID: "u"})
	if e := asError(t, err); e.Applied != actionpulse.AppliedUnknown {
		t.Errorf("an alias: %v", err)
	}
}

// TestBatchIsCounted: an answer that leaves an event out has not taken it.
func TestBatchIsCounted(t *testing.T) {
	t.Parallel()
	two := api.TrackRequest{Events: []api.TrackItem{{EventID: new(one)}, {EventID: new(one)}}}
	_, err := hurried(t, play(t, says(202, oneTaken)).URL).Intake.Track(t.Context(), two)
	if e := asError(t, err); e.Applied != actionpulse.AppliedUnknown || !holds(err, "every event") {
		t.Errorf("%v", err)
	}
}

// TestFollowIsBounded: an event that never ends is not kept without a bound.
func TestFollowIsBounded(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("data: "+strings.Repeat("a", 1<<10)+"\n", 1<<10)
	s := play(t, func(w http.ResponseWriter, _ *http.Request) {
		for written := 0; written < 80<<20; {
			n, err := io.WriteString(w, lines)
			if written += n; err != nil {
				return // the client has heard enough
			}
		}
		t.Error("the client reads all of it")
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	policy := (&hasty{}).policy()
	policy.Sleep = func(context.Context, time.Duration) error { // one connection is enough
		cancel(errors.New("enough"))
		return context.Cause(ctx)
	}
	for _, err := range newClients(t, s.URL, actionpulse.WithRetry(policy)).Executions.Follow(ctx, "x-1") {
		if !holds(err, "too large") {
			t.Errorf("got %v", err)
		}
	}
}
