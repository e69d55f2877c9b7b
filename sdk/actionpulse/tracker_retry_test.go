package actionpulse_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// waits returns the times between requests.
func waits(sent []intakeRequest) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(sent); i++ {
		out = append(out, sent[i].at.Sub(sent[i-1].at))
	}
	return out
}

// noJitter makes delays exact: a share of chance of one half is none.
func noJitter(o *actionpulse.TrackerOptions) {
	o.Policy.Delays.Rand = func() float64 { return 0.5 }
}

// TestTrackerRepeatsTheSameBatch: whatever comes in meanwhile, the batch that
// has failed is repeated byte for byte, at the delays of the table, and alone.
func TestTrackerRepeatsTheSameBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		s.script = []reaction{
			s.loses, foreign(502), declines(500, "internal"), declines(503, "unavailable", "Retry-After", "7"),
			declines(429, "rate_limited", "Retry-After", "90"),
		}
		o := h.options(s)
		noJitter(&o)
		tracker := newTracker(t, serverKey, o)
		first := track(t, tracker, "first")
		elapse(1100 * time.Millisecond)
		track(t, tracker, "second")
		closeAfter(t, tracker, 5*time.Minute)
		sent := s.sent()
		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 7 * time.Second, 90 * time.Second, 0}
		if got := waits(sent); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("waits %v, want %v", got, want)
		}
		for i, r := range sent {
			if i < 6 && (r.body != sent[0].body || r.events[0].EventID != first) {
				t.Errorf("attempt %d differs: %s", i+1, r.body)
			}
		}
		if last := sent[len(sent)-1]; last.names() != "second" {
			t.Errorf("then came %q", last.names())
		}
		if got := tracker.Stats(); got.Sent != 2 || got.Duplicates != 1 || got.Retries != 5 || got.Requests != 7 {
			t.Errorf("got %+v", got)
		}
	})
}

func closeAfter(t *testing.T, tracker *actionpulse.Tracker, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := tracker.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestTrackerRestsAndKeeps: refusals that a repeat does not help end the
// attempts at once, and the records stay.
func TestTrackerRestsAndKeeps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		answer reaction
		code   api.Code
		says   string
	}{
		{"no credential", declines(401, "unauthenticated"), api.CodeUnauthenticated, "401"},
		{"suspended", declines(402, "payment_required"), api.CodePaymentRequired, "402"},
		{"another key", declines(403, "forbidden"), api.CodeForbidden, "403"},
		{"another URL", declines(404, "not_found"), api.CodeNotFound, "404"},
		{"media type", declines(415, "unsupported_media_type"), api.CodeUnsupportedMediaType, "415"},
		{"quota", declines(429, "quota_exceeded"), "quota_exceeded", "429"},
		{"a trial's quota", declines(429, "trial_quota_exceeded"), "trial_quota_exceeded", "429"},
		{"a foreign 422", foreign(422), "", "paused"},
		{"a foreign 404", foreign(404), "", "paused"},
		{"a redirect", foreign(302), "", "paused"},
		{"a stranger's 200", foreign(200), "", "is the URL right?"},
		{"a stranger's 202", foreign(202), "", "is the URL right?"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { restAndKeep(t, c.answer, c.code, c.says) })
		})
	}
}

func restAndKeep(t *testing.T, refusal reaction, code api.Code, says string) {
	s, h := newIntake(refusal, refusal, refusal), &heard{}
	tracker := newTracker(t, serverKey, h.options(s))
	id := track(t, tracker, "e")
	err := tracker.Flush(t.Context())
	paused, ok := errors.AsType[*actionpulse.PausedError](err)
	if !ok || paused.Code != code || len(s.sent()) != 1 {
		t.Fatalf("got %v, %d requests", err, len(s.sent()))
	}
	elapse(actionpulse.DefaultPause)
	synctest.Wait()
	tracker.Resume()
	synctest.Wait()
	if got := waits(s.sent()); fmt.Sprint(got) != "[5m0s 0s]" {
		t.Errorf("waits %v", got)
	}
	if got := tracker.Stats(); got.Pending != 1 || got.GaveUp != 0 || got.Rejected != 0 {
		t.Errorf("got %+v", got)
	}
	tracker.Resume()
	synctest.Wait()
	closeNow(t, tracker)
	if s.count(id) != 1 || len(h.pauses()) != 1 {
		t.Errorf("stored %v; %d pauses were told of, want 1", s.stored, len(h.pauses()))
	}
	h.says(t, says)
	if text := h.log.String(); strings.Contains(text, serverKey) {
		t.Errorf("the log holds the key: %s", text)
	}
}

// TestTrackerAttemptsAreBounded, and what is not sent then is kept and said.
func TestTrackerAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		for range 4 {
			s.script = append(s.script, foreign(503))
		}
		o := h.options(s)
		o.Policy = retry.Policy{MaxAttempts: 3}
		noJitter(&o)
		tracker := newTracker(t, serverKey, o)
		id := track(t, tracker, "e")
		if err := tracker.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "attempts have run out") {
			t.Errorf("got %v", err)
		}
		h.says(t, "the records are kept")
		elapse(10 * time.Minute)
		synctest.Wait()
		if got := waits(s.sent()); fmt.Sprint(got) != "[1s 2s 5m0s 1s]" {
			t.Errorf("waits %v", got)
		}
		closeNow(t, tracker)
		if s.count(id) != 1 {
			t.Errorf("stored %v", s.stored)
		}
	})
}

// TestTrackerResumeKeepsRetryAfter: Resume ends a pause, not a wait that the
// server has named.
func TestTrackerResumeKeepsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(declines(429, "rate_limited", "Retry-After", "3600")), &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		track(t, tracker, "e")
		if err := tracker.Flush(t.Context()); err == nil {
			t.Error("Flush has waited for an hour")
		}
		elapse(30 * time.Minute) // longer than a pause
		synctest.Wait()
		tracker.Resume()
		elapse(30*time.Minute - time.Millisecond)
		synctest.Wait()
		if n := len(s.sent()); n != 1 {
			t.Errorf("%d requests before Retry-After", n)
		}
		elapse(time.Millisecond)
		synctest.Wait()
		if n := len(s.sent()); n != 2 {
			t.Errorf("%d requests after Retry-After", n)
		}
		closeNow(t, tracker)
	})
}

// TestTrackerReportsRejectedItems: with index, code and id, and sends them
// never again.
func TestTrackerReportsRejectedItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		good, bad := track(t, tracker, "good"), ""
		s.reject = func(id string) string {
			if id == bad {
				return "invalid_properties"
			}
			return ""
		}
		bad = track(t, tracker, "bad")
		closeNow(t, tracker)
		if len(h.refused()) != 1 || h.refused()[0].Index != 1 || h.refused()[0].EventID != bad ||
			h.refused()[0].Code != api.RejectInvalidProperties || !strings.Contains(string(h.refused()[0].JSON), `"bad"`) {
			t.Errorf("rejected %+v", h.refused())
		}
		h.says(t, "index=1 code=invalid_properties")
		h.says(t, bad)
		if len(s.sent()) != 1 || s.count(good) != 1 || tracker.Stats().Rejected != 1 {
			t.Errorf("%d requests, %+v", len(s.sent()), tracker.Stats())
		}
	})
}

// TestTrackerDisbelievesCounts: an answer that does not account for each item
// is none.
func TestTrackerDisbelievesCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lie := func(body string) reaction {
			return func(*intakeRequest) (*answered, error) { return reply(http.StatusAccepted, body), nil }
		}
		s, h := newIntake(
			lie(`{"accepted":0,"duplicates":0,"rejected":[]}`), lie(`{"accepted":1,"duplicates":2,"rejected":[]}`), lie(`{}`),
			lie(`{"accepted":0,"rejected":[{"index":1,"event_id":null,"code":"invalid_event","message":""}]}`), lie(`{"accep`),
		), &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		id := track(t, tracker, "e")
		closeNow(t, tracker)
		if len(s.sent()) != 6 || s.count(id) != 1 || tracker.Stats().Sent != 1 {
			t.Errorf("%d requests, stored %v, %+v", len(s.sent()), s.stored, tracker.Stats())
		}
	})
}
