package actionpulse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

func TestTrackerFixesIDAndTimeAtTheFact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		elapse(1500 * time.Millisecond)
		fact := time.Now()
		id := track(t, tracker, "signed_up")
		if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id || parsed.Version() != 7 {
			t.Errorf("the id is %q", id)
		}
		closeNow(t, tracker)
		sent := s.sent()
		if len(sent) != 1 || sent[0].path != "/v1/track" || sent[0].key != "Bearer "+serverKey {
			t.Fatalf("got %+v", sent)
		}
		want := sentEvent{id, "signed_up", fact.UTC().Format("2006-01-02T15:04:05.000Z")}
		if got := sent[0].events[0]; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if strings.Contains(sent[0].body, "sent_at") || strings.Contains(sent[0].body, "historical") {
			t.Errorf("the body says more than it should: %s", sent[0].body)
		}
	})
}

func TestTrackerBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := h.options(s)
		o.MaxBatch, o.MaxBytes, o.MaxAge = 3, 4096, 10*time.Second
		tracker := newTracker(t, serverKey, o)
		began := time.Now()
		for i := range 4 {
			track(t, tracker, fmt.Sprintf("e%d", i))
		}
		synctest.Wait()
		if sent := s.sent(); len(sent) != 1 || sent[0].names() != "e0 e1 e2" || !sent[0].at.Equal(began) {
			t.Fatalf("by count: %+v", sent)
		}
		elapse(9999 * time.Millisecond)
		synctest.Wait()
		if n := len(s.sent()); n != 1 {
			t.Fatalf("%d requests before the age", n)
		}
		elapse(time.Millisecond)
		synctest.Wait()
		if sent := s.sent(); len(sent) != 2 || sent[1].names() != "e3" {
			t.Fatalf("by age: %+v", sent)
		}
		large := map[string]any{"text": strings.Repeat("x", 1800)}
		for i := range 3 {
			if _, err := tracker.Track(actionpulse.Event{Name: fmt.Sprintf("l%d", i), AnonID: "a", Properties: large}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		sent := s.sent()
		if len(sent) != 3 || sent[2].names() != "l0 l1" || len(sent[2].body) > 4096 {
			t.Fatalf("by bytes: %+v", sent)
		}
		closeNow(t, tracker)
		if got := tracker.Stats(); got.Sent != 7 || got.Pending != 0 || got.Requests != 4 || got.Duplicates != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestTrackerBodiesFit: what stands around and between the events counts, too.
func TestTrackerBodiesFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, limit = 2000, 100_000
		s, h := newIntake(), &heard{}
		o := h.options(s)
		o.MaxBatch, o.MaxBytes, o.Historical, o.CorrectSkew = 1000, limit, true, true
		tracker := newTracker(t, serverKey, o)
		for range events {
			track(t, tracker, "e")
		}
		closeNow(t, tracker)
		for i, r := range s.sent() {
			if full := i < len(s.sent())-1; len(r.body) > limit || full && len(r.body) < limit-300 {
				t.Errorf("body %d has %d bytes", i, len(r.body))
			}
		}
		if len(s.stored) != events {
			t.Errorf("%d are stored", len(s.stored))
		}
	})
}

func TestTrackerFlushDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := h.options(s)
		o.MaxAge = time.Hour
		tracker := newTracker(t, serverKey, o)
		track(t, tracker, "e")
		began := time.Now()
		if err := tracker.Flush(t.Context()); err != nil || len(s.sent()) != 1 || time.Since(began) != 0 {
			t.Errorf("%v, %d requests after %s", err, len(s.sent()), time.Since(began))
		}
		if err := tracker.Flush(t.Context()); err != nil || len(s.sent()) != 1 {
			t.Errorf("with nothing to send: %v, %d requests", err, len(s.sent()))
		}
		closeNow(t, tracker)
		if _, err := tracker.Track(actionpulse.Event{Name: "late", UserID: "u"}); !errors.Is(err, actionpulse.ErrTrackerClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := tracker.Close(t.Context()); !errors.Is(err, actionpulse.ErrTrackerClosed) {
			t.Errorf("the second Close: %v", err)
		}
	})
}

func TestTrackerInMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := h.options(s)
		o.MaxPending, o.MaxAge = 2, time.Hour
		tracker := newTracker(t, serverKey, o)
		track(t, tracker, "a")
		track(t, tracker, "b")
		if _, err := tracker.Track(actionpulse.Event{Name: "c", UserID: "u"}); !errors.Is(err, actionpulse.ErrOutboxFull) {
			t.Errorf("got %v, want ErrOutboxFull", err)
		}
		closeNow(t, tracker)
		if got := s.sent(); len(got) != 1 || got[0].names() != "a b" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestTrackerCloseKeepsItsDeadline: what is left in memory then is lost, and
// that is said of each record.
func TestTrackerCloseKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(declines(429, "rate_limited", "Retry-After", "60")), &heard{}
		tracker := newTracker(t, serverKey, h.options(s))
		id := track(t, tracker, "e")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		err := tracker.Close(ctx)
		left, ok := errors.AsType[*actionpulse.LeftError](err)
		if !ok || left.Records != 1 || left.Kept || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		if len(s.sent()) != 1 {
			t.Errorf("%d requests: Retry-After was not kept", len(s.sent()))
		}
		if len(h.gone()) != 1 || h.gone()[0].EventID != id || h.gone()[0].Reason != actionpulse.GaveUpClosed {
			t.Errorf("gave up %+v", h.gone())
		}
		h.says(t, id)
	})
}

func TestTrackerIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s, h := newIntake(), &heard{}
	o := h.options(s)
	o.Dir, o.MaxAge = t.TempDir(), time.Millisecond
	tracker := newTracker(t, serverKey, o)
	const routines, each = 8, 50
	var all sync.Map
	var group sync.WaitGroup
	for range routines {
		group.Go(func() {
			for range each {
				id, err := tracker.Track(actionpulse.Event{Name: "e", UserID: "u"})
				if _, twice := all.LoadOrStore(id, true); err != nil || twice {
					t.Errorf("%s: %v", id, err)
				}
				_ = tracker.Stats()
			}
			if err := tracker.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	closeNow(t, tracker)
	if len(s.stored) != routines*each {
		t.Errorf("%d events are stored, want %d", len(s.stored), routines*each)
	}
	for id, n := range s.stored {
		if _, ours := all.Load(id); !ours || n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
}
