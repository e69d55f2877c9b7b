package actionpulse_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

var ada = actionpulse.Identity{AnonID: "laptop-1", UserID: "ada", Traits: map[string]any{"plan": "pro"}}

func identify(t *testing.T, tracker *actionpulse.Tracker) {
	t.Helper()
	if err := tracker.Identify(ada); err != nil {
		t.Fatal(err)
	}
}

// TestTrackerKeepsTheOrder of events and what is said of persons.
func TestTrackerKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		track(t, tracker, "a")
		track(t, tracker, "b")
		identify(t, tracker)
		if err := tracker.Alias("laptop-2", "ada"); err != nil {
			t.Fatal(err)
		}
		track(t, tracker, "c")
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		closeNow(t, tracker)
		var got []string
		for _, r := range s.sent() {
			got = append(got, r.path+" "+r.names())
		}
		if strings.Join(got, ", ") != "/v1/track a b, /v1/identify , /v1/alias , /v1/track c" {
			t.Errorf("got %q", got)
		}
		if body := s.sent()[1].body; body != `{"anon_id":"laptop-1","user_id":"ada","ts":"`+at+`","traits":{"plan":"pro"}}` {
			t.Errorf("identify: %s", body)
		}
		if body := s.sent()[2].body; body != `{"anon_id":"laptop-2","user_id":"ada"}` {
			t.Errorf("alias: %s", body)
		}
		if got := tracker.Stats(); got.Sent != 5 {
			t.Errorf("got %+v", got)
		}
	})
}

// refused is a connection that did not come about.
func refused(*intakeRequest) (*answered, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

// TestTrackerRepeatsIdentifyThatWasNotTaken, exactly as it was.
func TestTrackerRepeatsIdentifyThatWasNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notApplied := func(*intakeRequest) (*answered, error) {
			return reply(503, `{"error":{"code":"unavailable","message":"","details":{"applied":false}}}`), nil
		}
		s, h := newIntake(refused, declines(500, "internal"), declines(429, "rate_limited", "Retry-After", "3"), foreign(429), notApplied), &heard{}
		o := inFolder(t, s, h)
		tracker := newTracker(t, serverKey, o)
		identify(t, tracker)
		closeAfter(t, tracker, 10*time.Minute)
		for _, r := range s.sent() {
			if r.path != "/v1/identify" || r.body != s.sent()[0].body {
				t.Errorf("sent %s %s", r.path, r.body)
			}
		}
		if len(s.sent()) != 6 || len(h.gone()) != 0 || tracker.Stats().Sent != 1 {
			t.Errorf("%d requests, gave up %+v", len(s.sent()), h.gone())
		}
	})
}

// TestTrackerDoesNotRepeatIdentifyThatMayHaveBeenTaken: the link is made by an
// alias, and the loss is told of.
func TestTrackerDoesNotRepeatIdentifyThatMayHaveBeenTaken(t *testing.T) {
	t.Parallel()
	for what, answer := range map[string]func(*intake) reaction{
		"a lost answer": func(s *intake) reaction { return s.loses },
		"a proxy's 502": func(*intake) reaction { return foreign(502) },
		"a 503":         func(*intake) reaction { return declines(503, "unavailable") },
	} {
		for _, key := range []string{serverKey, legacyKey, browserKey} {
			t.Run(what+" "+key[:4], func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s, h := newIntake(), &heard{}
					s.script = append(s.script, answer(s), foreign(502))
					tracker := newTracker(t, key, h.options(s))
					identify(t, tracker)
					track(t, tracker, "after")
					closeNow(t, tracker)
					aliases := 2
					if key == browserKey {
						aliases = 0
					}
					if len(s.sent("/v1/identify")) != 1 || len(s.sent("/v1/alias")) != aliases || len(s.stored) != 1 {
						t.Errorf("sent %+v", s.sent())
					}
					if len(h.gone()) != 1 || h.gone()[0].Reason != actionpulse.GaveUpOutcomeUnknown || h.gone()[0].Type != actionpulse.RecordIdentify {
						t.Errorf("gave up %+v", h.gone())
					}
				})
			})
		}
	}
}

// TestTrackerRemembersThatIdentifyWasBegun: a process that ends before the
// answer came does not send it again.
func TestTrackerRemembersThatIdentifyWasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		hang := func(r *intakeRequest) (*answered, error) {
			s.take(r)
			elapse(20 * time.Second)
			return nil, errors.New("the process has ended")
		}
		s.script = append(s.script, hang)
		o := inFolder(t, s, h)
		first := newTracker(t, serverKey, o)
		identify(t, first)
		elapse(10 * time.Second)
		abort(t, first, 1)
		second := newTracker(t, serverKey, o)
		closeNow(t, second)
		if len(s.sent("/v1/identify")) != 1 || len(s.sent("/v1/alias")) != 1 || len(h.gone()) != 1 {
			t.Errorf("sent %+v, gave up %+v", s.sent(), h.gone())
		}
	})
}

// TestTrackerReportsARefusedPerson and goes on.
func TestTrackerReportsARefusedPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(declines(422, "validation_failed"), declines(400, "invalid_json")), &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		identify(t, tracker)
		if err := tracker.Alias("a", "u"); err != nil {
			t.Fatal(err)
		}
		track(t, tracker, "after")
		closeNow(t, tracker)
		if len(h.refused()) != 2 || h.refused()[0].Code != "validation_failed" || h.refused()[1].Type != actionpulse.RecordAlias || len(s.stored) != 1 {
			t.Errorf("rejected %+v, stored %v", h.refused(), s.stored)
		}
	})
}

func TestTrackerKeepsIdentifyWhenTheKeyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(declines(401, "unauthenticated")), &heard{}
		o := inFolder(t, s, h)
		first := newTracker(t, serverKey, o)
		identify(t, first)
		if err := first.Flush(t.Context()); err == nil {
			t.Error("Flush says that all is well")
		}
		abort(t, first, 1)
		closeNow(t, newTracker(t, serverKey, o))
		if len(s.sent("/v1/identify")) != 2 || len(s.sent()) != 2 || len(h.gone()) != 0 {
			t.Errorf("sent %+v", s.sent())
		}
	})
}
