package actionpulse_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// TestTrackerAge: younger than 47 hours is sent, older is given up aloud.
func TestTrackerAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what  string
		apart time.Duration
		sent  bool
	}{
		{"in time", 47 * time.Hour, true},
		{"too late", 47*time.Hour + time.Millisecond, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, h := newIntake(), &heard{}
				o := inFolder(t, s, h)
				first := newTracker(t, serverKey, o)
				id := track(t, first, "e")
				abort(t, first, 1)
				elapse(c.apart)
				second := newTracker(t, serverKey, o)
				fresh := track(t, second, "fresh")
				closeNow(t, second)
				if (s.count(id) == 1) != c.sent || s.count(fresh) != 1 {
					t.Errorf("stored %v", s.stored)
				}
				if gone := len(h.gone()) == 1 && h.gone()[0].EventID == id && h.gone()[0].Reason == actionpulse.GaveUpTooOld; gone == c.sent {
					t.Errorf("gave up %+v", h.gone())
				}
				if !c.sent {
					h.says(t, "given up")
					h.says(t, id)
				}
			})
		})
	}
}

// TestTrackerNeverSendsTooLate: attempts at a batch end when a record of it
// becomes too old; the others go on.
func TestTrackerNeverSendsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := h.options(s)
		o.Policy = retry.Policy{MaxAttempts: 1000}
		for range 200 {
			s.script = append(s.script, foreign(http.StatusBadGateway))
		}
		tracker := newTracker(t, serverKey, o)
		fact := time.Now().Add(-47*time.Hour + 5*time.Minute)
		old, err := tracker.Track(actionpulse.Event{Name: "old", UserID: "u", Time: fact})
		if err != nil {
			t.Fatal(err)
		}
		id := track(t, tracker, "new")
		elapse(2 * time.Hour)
		synctest.Wait()
		for _, r := range s.sent() {
			late := r.at.Sub(fact) > 47*time.Hour
			if has := r.events[0].EventID == old; has == late {
				t.Fatalf("after %s the old event is sent: %v", r.at.Sub(fact), has)
			}
		}
		if len(h.gone()) != 1 || h.gone()[0].EventID != old {
			t.Errorf("gave up %+v", h.gone())
		}
		closeNow(t, tracker)
		if s.count(id) != 1 || s.count(old) != 0 {
			t.Errorf("stored %v", s.stored)
		}
	})
}

// TestTrackerHistorical: any past time, kept until 47 hours after Track.
func TestTrackerHistorical(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		event := actionpulse.Event{Name: "old", UserID: "u", Time: time.Now().AddDate(-1, 0, 0)}
		plain := newTracker(t, serverKey, o)
		if _, err := plain.Track(event); !errors.Is(err, actionpulse.ErrTooOld) {
			t.Errorf("got %v, want ErrTooOld", err)
		}
		closeNow(t, plain)
		o.Historical = true
		for i := range 2 {
			tracker := newTracker(t, serverKey, o)
			if _, err := tracker.Track(event); err != nil {
				t.Fatal(err)
			}
			abort(t, tracker, 1)
			elapse(47*time.Hour + time.Duration(i)*time.Second)
			closeNow(t, newTracker(t, serverKey, o))
		}
		if sent := s.sent(); len(sent) != 1 || !sent[0].historical || len(h.gone()) != 1 {
			t.Errorf("sent %+v, gave up %d", sent, len(h.gone()))
		}
		if _, err := actionpulse.NewTracker("https://pulse.example", browserKey, o); err == nil {
			t.Error("a browser token was taken for historical events")
		}
	})
}

// TestTrackerDoubtsAClockThatIsSetAhead: nothing is given up, nor sent, for
// some minutes; if the clock is set back all is well.
func TestTrackerDoubtsAClockThatIsSetAhead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		back bool
	}{{"set back", true}, {"left so", false}} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { doubtClock(t, c.back) })
		})
	}
}

func doubtClock(t *testing.T, back bool) {
	s, h := newIntake(declines(401, "unauthenticated")), &heard{}
	o := h.options(s)
	var ahead atomic.Int64 // a duration
	o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	o.Pause = time.Minute
	tracker := newTracker(t, serverKey, o)
	id := track(t, tracker, "e")
	elapse(30 * time.Second)
	synctest.Wait()
	ahead.Store(int64(72 * time.Hour))
	elapse(9 * time.Minute)
	synctest.Wait()
	if n := len(s.sent()); n != 1 || len(h.gone()) != 0 {
		t.Fatalf("%d requests, gave up %+v", n, h.gone())
	}
	if back {
		ahead.Store(0)
	}
	elapse(5 * time.Minute)
	synctest.Wait()
	if sent, gone := s.count(id) == 1, len(h.gone()) == 1; sent != back || gone == back {
		t.Errorf("sent: %v, given up: %v", sent, gone)
	}
	closeNow(t, tracker)
}

// TestTrackerGivesUpHeldRecords too: they would wait for a key for ever.
func TestTrackerGivesUpHeldRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		browser := newTracker(t, browserKey, o)
		track(t, browser, "a")
		elapse(time.Hour) // it is sent
		synctest.Wait()
		s.script = append(s.script, declines(401, "unauthenticated"))
		track(t, browser, "b")
		elapse(time.Minute)
		track(t, browser, "c")
		abort(t, browser, 2)
		server := newTracker(t, serverKey, o)
		elapse(46 * time.Hour)
		synctest.Wait()
		if len(h.gone()) != 0 || server.Stats().Held != 2 {
			t.Errorf("gave up %+v", h.gone())
		}
		elapse(2 * time.Hour)
		synctest.Wait()
		if len(h.gone()) != 2 || server.Stats().Held != 0 || h.gone()[0].KeyKind != actionpulse.KeyBrowser {
			t.Errorf("gave up %+v, %+v", h.gone(), server.Stats())
		}
		closeNow(t, server)
		if len(s.sent()) != 2 {
			t.Errorf("%d requests", len(s.sent()))
		}
	})
}

func TestTrackerCorrectsSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(foreign(503)), &heard{}
		o := h.options(s)
		o.CorrectSkew = true
		o.Now = func() time.Time { return time.Now().Add(time.Hour) }
		noJitter(&o)
		tracker := newTracker(t, serverKey, o)
		track(t, tracker, "e")
		closeNow(t, tracker)
		for i, r := range s.sent() {
			want := `{"sent_at":"` + r.at.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z") + `","events":[`
			if len(s.sent()) != 2 || r.body[:len(want)] != want || r.events[0] != s.sent()[0].events[0] {
				t.Errorf("attempt %d: %s", i+1, r.body)
			}
		}
	})
}
