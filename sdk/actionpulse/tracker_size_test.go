package actionpulse_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// limited is a server that refuses bodies over a size.
type limited struct {
	*intake
	size int
}

func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if int(r.ContentLength) > l.size {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.requests = append(l.requests, intakeRequest{at: time.Now(), path: "refused"})
		return reply(http.StatusRequestEntityTooLarge, `{"error":{"code":"payload_too_large"}}`).response(), nil
	}
	return l.intake.RoundTrip(r)
}

// TestTrackerHalvesAndGrows after a 413.
func TestTrackerHalvesAndGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := &limited{intake: newIntake(), size: 3000}, &heard{}
		o := h.options(s)
		o.MaxBatch, o.MaxAge = 100, time.Hour
		tracker := newTracker(t, serverKey, o)
		var ids []string
		for i := range 100 { // about 13,000 bytes
			ids = append(ids, track(t, tracker, fmt.Sprintf("e%02d", i)))
		}
		if err := tracker.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		refused := len(s.sent("refused"))
		if refused == 0 || refused > 8 {
			t.Errorf("%d bodies were refused", refused)
		}
		s.size = 1 << 20
		for range 3000 {
			ids = append(ids, track(t, tracker, "e"))
		}
		closeNow(t, tracker)
		for _, id := range ids {
			if s.count(id) != 1 {
				t.Fatalf("%s is stored %d times", id, s.count(id))
			}
		}
		sent := s.sent("/v1/track")
		var all []string
		for _, r := range sent {
			all = append(all, r.names())
		}
		order := strings.Join(all, " ")
		if !strings.HasPrefix(order, "e00 e01 e02 ") || strings.Index(order, "e98 ") > strings.Index(order, "e99 ") {
			t.Errorf("the order is lost: %s", order[:200])
		}
		if last := sent[len(sent)-2]; len(last.events) != 100 {
			t.Errorf("a batch has %d events at the end, want 100: it does not grow back", len(last.events))
		}
	})
}

// TestTrackerGivesUpAnItemThatFitsNoBody aloud, and goes on.
func TestTrackerGivesUpAnItemThatFitsNoBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := &limited{intake: newIntake(), size: 600}, &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		before := track(t, tracker, "before")
		large, err := tracker.Track(actionpulse.Event{Name: "large", UserID: "u", Context: map[string]any{"x": strings.Repeat("x", 600)}})
		if err != nil {
			t.Fatal(err)
		}
		after := track(t, tracker, "after")
		closeNow(t, tracker)
		if len(h.refused()) != 1 || h.refused()[0].EventID != large || h.refused()[0].Code != api.RejectEventTooLarge {
			t.Errorf("rejected %+v", h.refused())
		}
		if s.count(before) != 1 || s.count(after) != 1 || s.count(large) != 0 {
			t.Errorf("stored %v", s.stored)
		}
	})
}

// poisoned is a server that refuses whole requests for the sake of one event.
type poisoned struct {
	*intake
	text string
}

func (p *poisoned) RoundTrip(r *http.Request) (*http.Response, error) {
	p.script = []reaction{func(r *intakeRequest) (*answered, error) {
		if strings.Contains(r.body, p.text) {
			return declines(http.StatusUnprocessableEntity, "validation_failed")(r)
		}
		return nil, nil
	}}
	return p.intake.RoundTrip(r)
}

// TestTrackerFindsWhatPoisonsABatch: one record does not stop the others.
func TestTrackerFindsWhatPoisonsABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := &poisoned{newIntake(), "poison"}, &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		for i := range 20 {
			track(t, tracker, fmt.Sprint("good", i))
			if i == 12 {
				track(t, tracker, "poison")
			}
		}
		closeNow(t, tracker)
		if len(h.refused()) != 1 || !strings.Contains(string(h.refused()[0].JSON), "poison") || h.refused()[0].Code != "validation_failed" {
			t.Errorf("rejected %+v", h.refused())
		}
		if len(s.stored) != 20 {
			t.Errorf("%d are stored, want 20", len(s.stored))
		}
	})
}

// TestTrackerDoesNotDropAllThatIsRefused: when every request is refused it is
// not the records' fault.
func TestTrackerDoesNotDropAllThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := &poisoned{newIntake(), "events"}, &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		for range 100 {
			track(t, tracker, "e")
		}
		if err := tracker.Flush(t.Context()); err == nil {
			t.Error("Flush says that all is well")
		}
		if got := tracker.Stats(); got.Rejected != 10 || got.Pending != 90 {
			t.Errorf("got %+v", got)
		}
		elapse(actionpulse.DefaultPause)
		synctest.Wait()
		if got := tracker.Stats(); got.Rejected != 11 || got.Pending != 89 {
			t.Errorf("after a pause: %+v", got)
		}
		s.text = "nothing at all"
		tracker.Resume()
		synctest.Wait()
		closeNow(t, tracker)
		if len(s.stored) != 89 {
			t.Errorf("%d are stored, want 89", len(s.stored))
		}
	})
}
