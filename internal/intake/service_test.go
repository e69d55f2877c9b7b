package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/record"
)

func TestThreeInOne(t *testing.T) {
	s := newSystem(t)
	a, b, c := uuid.NewString(), uuid.NewString(), uuid.NewString()
	s.expect(server, batch(item(a)), 1, 0)
	s.expect(server, batch(item(a), item(b), item(c), item(strings.ToUpper(c))), 4, 2)
	if diff := cmp.Diff(map[string]int{a: 1, b: 1, c: 1}, s.stored()); diff != "" {
		t.Fatal(diff)
	}
}

func TestPoisonPill(t *testing.T) {
	s := newSystem(t)
	items := make([]string, 100)
	for i := range items {
		items[i] = item(uuid.NewString())
	}
	items[37] = `{"event_id":"50172","event":"e","anon_id":"x"}`
	items[38] = `{"event_id":"` + uuid.NewString() + `","event":"","anon_id":"x"}`
	first := s.track(server, batch(items...))
	if first.Accepted != 98 || first.Duplicates != 0 || len(first.Rejected) != 2 {
		t.Fatalf("got %+v", first)
	}
	if r := first.Rejected[0]; r.Index != 37 || r.Code != api.RejectInvalidEventID || *r.EventID != "50172" {
		t.Errorf("got %+v", r)
	}
	if r := first.Rejected[1]; r.Index != 38 || r.Code != api.RejectInvalidEvent {
		t.Errorf("got %+v", r)
	}
	again := s.track(server, batch(items...))
	if again.Accepted != 98 || again.Duplicates != 98 {
		t.Fatalf("got %+v", again)
	}
	if diff := cmp.Diff(first.Rejected, again.Rejected); diff != "" {
		t.Fatal(diff)
	}
}

func TestIdentityIsProjectKindAndID(t *testing.T) {
	s := newSystem(t)
	id := uuid.NewString()
	other := intake.Source{Project: 2, KeyKind: record.KeyServer, Key: 2}
	browser := intake.Source{Project: 1, KeyKind: record.KeyBrowser, Key: 3}
	legacy := intake.Source{Project: 1, KeyKind: record.KeyLegacy, Key: 4}
	rotated := intake.Source{Project: 1, KeyKind: record.KeyServer, Key: 5}
	for _, src := range []intake.Source{server, other, browser, legacy} {
		s.expect(src, batch(item(id)), 1, 0)
		s.expect(src, batch(item(id)), 1, 1)
	}
	s.expect(rotated, batch(item(id)), 1, 1)
	if got := s.stored()[id]; got != 4 {
		t.Errorf("stored %d times, want 4", got)
	}
}

func TestWindowAcrossRestarts(t *testing.T) {
	s := newSystem(t)
	id := uuid.NewString()
	s.expect(server, batch(item(id)), 1, 0)
	for _, pass := range []time.Duration{time.Hour, 46*time.Hour + 59*time.Minute, time.Minute} {
		s.clock.pass(pass)
		s.restart()
		s.expect(server, batch(item(id)), 1, 1)
	}
	s.clock.pass(time.Millisecond) // 48 h and 1 ms after the first
	s.restart()
	s.expect(server, batch(item(id)), 1, 0)
	s.expect(server, batch(item(id)), 1, 1)
	if got := s.stored()[id]; got != 2 {
		t.Errorf("stored %d times, want 2", got)
	}
}

func TestMidnight(t *testing.T) {
	s := newSystem(t)
	s.clock.jump(time.Date(2026, 5, 31, 23, 59, 58, 0, time.UTC).Sub(s.clock.Wall()))
	s.restart()
	id := uuid.NewString()
	body := func(sent string) []byte {
		return []byte(`{"sent_at":"` + sent + `","events":[{"event_id":"` + id + `","event":"e","anon_id":"x","ts":"2026-05-31T23:59:57Z"}]}`)
	}
	s.expect(server, body("2026-05-31T23:59:58Z"), 1, 0)
	s.clock.pass(4*time.Minute + 2*time.Second)
	s.expect(server, body("2026-06-01T00:04:00Z"), 1, 1)
	records := s.records()
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	if got := time.UnixMilli(records[0].Items[0].TS).UTC(); got != time.Date(2026, 5, 31, 23, 59, 57, 0, time.UTC) {
		t.Errorf("stored at %v", got)
	}
}

func TestTransitIsNotSkew(t *testing.T) {
	s := newSystem(t)
	send := func(ts, sent, received time.Time) {
		s.clock.jump(received.Sub(s.clock.Wall()))
		s.track(server, fmt.Appendf(nil, `{"sent_at":%q,"events":[{"event":"e","anon_id":"x","ts":%q}]}`,
			sent.Format(time.RFC3339), ts.Format(time.RFC3339)))
	}
	t0 := s.clock.Wall()
	send(t0.Add(1*time.Second), t0.Add(2*time.Second), t0.Add(32*time.Second))
	send(t0.Add(10*time.Second), t0.Add(32*time.Second), t0.Add(33*time.Second))
	records := s.records()
	if a, b := records[0].Items[0], records[1].Items[0]; a.TS >= b.TS || a.TSStatus != record.TSOK || b.TSStatus != record.TSOK {
		t.Errorf("the device's order is lost: %+v %+v", a, b)
	}
}

func TestItemsWithoutAnIDAreNeverDuplicates(t *testing.T) {
	s := newSystem(t)
	body := batch(`{"event":"e","anon_id":"x"}`, `{"event":"e","anon_id":"x","event_id":null}`)
	s.expect(server, body, 2, 0)
	s.expect(server, body, 2, 0)
	if got := len(s.stored()); got != 4 {
		t.Errorf("%d events, want 4", got)
	}
}

func TestConflictsAreCountedAndTheFirstWriteWins(t *testing.T) {
	s := newSystem(t)
	id := uuid.NewString()
	s.expect(server, batch(item(id)), 1, 0)
	s.expect(server, batch(strings.Replace(item(id), `"e"`, `"other"`, 1), item(id)), 2, 2)
	debug := s.service.Debug(1)
	if len(debug.Conflicting) != 1 || len(debug.Duplicate) != 1 || len(debug.Accepted) != 1 {
		t.Fatalf("got %+v", debug)
	}
	if r := debug.Rates[0]; r.Accepted != 3 || r.Duplicates != 2 || r.Conflicting != 1 {
		t.Errorf("got %+v", r)
	}
	if it := s.records()[0].Items[0]; it.Event != "e" {
		t.Errorf("stored %q", it.Event)
	}
}

func TestManyAtOnceStoreOne(t *testing.T) {
	s := newSystem(t)
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	var accepted, duplicates atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			items := make([]string, len(ids))
			for i, id := range ids {
				items[i] = item(id)
			}
			r, err := s.service.Track(context.Background(), server, batch(items...))
			if err != nil {
				t.Error(err)
			}
			accepted.Add(int64(r.Accepted))
			duplicates.Add(int64(r.Duplicates))
		})
	}
	wg.Wait()
	if accepted.Load() != 1000 || duplicates.Load() != 980 {
		t.Errorf("accepted %d, duplicates %d", accepted.Load(), duplicates.Load())
	}
	for id, n := range s.stored() {
		if n != 1 {
			t.Errorf("%s is stored %d times", id, n)
		}
	}
}

func TestClockJumps(t *testing.T) {
	s := newSystem(t)
	id := uuid.NewString()
	s.expect(server, batch(item(id)), 1, 0)

	s.clock.jump(72 * time.Hour)
	_, err := s.service.Track(context.Background(), server, batch(item(uuid.NewString())))
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != api.CodeUnavailable || f.Details["applied"] != false || f.RetryAfter <= 0 {
		t.Fatalf("got %v", err)
	}
	if _, at := s.service.Decided(); at > s.clock.Wall().Add(-71*time.Hour).UnixMilli() {
		t.Errorf("the window time followed the jump")
	}
	if err := s.service.CheckClock(); fault.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("others are told that the clock is right: %v", err)
	}

	s.clock.jump(-72 * time.Hour)
	if err := s.service.CheckClock(); err != nil {
		t.Error(err)
	}
	s.expect(server, batch(item(id)), 1, 1)

	s.clock.jump(-72 * time.Hour) // behind: time stands still, nothing is refused and nothing expires
	s.expect(server, batch(item(id)), 1, 1)
	s.expect(server, batch(item(uuid.NewString())), 1, 0)
	records := s.records()
	if records[1].Received < records[0].Received {
		t.Errorf("receipt time ran backwards")
	}
	s.clock.jump(72 * time.Hour) // right again, which is no jump
	s.expect(server, batch(item(id)), 1, 1)

	s.clock.pass(30 * time.Hour) // long silence is no jump either
	s.expect(server, batch(item(id)), 1, 1)
}

// A jump is told from the start on, before anything was taken in: to events and
// to whoever asks.
func TestClockJumpsBeforeTheFirstEvent(t *testing.T) {
	s := newSystem(t)
	refused := func(when string) {
		t.Helper()
		if err := s.service.CheckClock(); fault.CodeOf(err) != api.CodeUnavailable {
			t.Errorf("%s, others are told that the clock is right: %v", when, err)
		}
		if _, err := s.service.Track(context.Background(), server, batch(item(uuid.NewString()))); fault.CodeOf(err) != api.CodeUnavailable {
			t.Errorf("%s, an event is taken: %v", when, err)
		}
	}
	taken := func(when string) {
		t.Helper()
		if err := s.service.CheckClock(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	taken("at the start")
	s.clock.pass(72 * time.Hour)
	taken("after a long silence")
	s.clock.jump(11 * time.Minute)
	refused("after a jump")
	if _, at := s.service.Decided(); at > s.clock.Wall().Add(-72*time.Hour).UnixMilli() {
		t.Error("the window time followed the jump")
	}
	s.clock.jump(-2 * time.Minute)
	taken("within what a clock may be ahead")
	s.clock.jump(2 * time.Minute)
	refused("after the next jump")
	s.restart() // the operator's word that the clock is right
	taken("after a restart")
	s.expect(server, batch(item(uuid.NewString())), 1, 0)
	if n := len(s.records()); n != 1 {
		t.Errorf("%d records", n)
	}

	s.clock.jump(-240 * time.Hour) // behind what is stored: nobody's word
	s.restart()
	s.clock.jump(1000 * time.Hour)
	taken("when the clock was put right")
	s.expect(server, batch(item(uuid.NewString())), 1, 0)
	s.clock.jump(time.Hour)
	refused("after a jump behind the first event")
}

// A machine that boots days ahead and is put right before its first event must
// not have moved the window.
func TestReadingTheTimeStampsNothing(t *testing.T) {
	s := newSystem(t)
	id := uuid.NewString()
	s.expect(server, batch(item(id)), 1, 0)
	s.clock.jump(72 * time.Hour)
	s.restart()
	s.service.Decided()
	s.clock.jump(-72 * time.Hour)
	s.expect(server, batch(item(id)), 1, 1)
	if _, at := s.service.Decided(); at > s.clock.Wall().UnixMilli() {
		t.Error("the window time is ahead")
	}
}

func TestAClaimFromTheFutureIsAClaim(t *testing.T) {
	s := newSystem(t)
	s.clock.jump(72 * time.Hour)
	s.restart()
	id := uuid.NewString()
	s.expect(server, batch(item(id)), 1, 0)
	s.clock.jump(-72 * time.Hour)
	s.restart()
	s.expect(server, batch(item(id)), 1, 1)
}

func TestRefusalMeansNothingAccepted(t *testing.T) {
	s := newSystem(t)
	s.guard.Store(fault.New(api.CodeInternal, "full"))
	id := uuid.NewString()
	if _, err := s.service.Track(context.Background(), server, batch(item(id))); fault.CodeOf(err) != api.CodeInternal {
		t.Fatalf("got %v", err)
	}
	s.guard.Store(nil)
	if got := len(s.records()); got != 0 {
		t.Fatalf("%d records", got)
	}
	s.expect(server, batch(item(id)), 1, 0)
	s.service.Close()
	if _, err := s.service.Track(context.Background(), server, batch(item(id))); fault.CodeOf(err) != api.CodeUnavailable {
		t.Fatalf("got %v", err)
	}
}

func TestHistorical(t *testing.T) {
	s := newSystem(t)
	body := []byte(`{"historical":true,"events":[{"event":"e","anon_id":"x","ts":"2011-10-11T13:45:40.276+02:00"}]}`)
	s.expect(server, body, 1, 0)
	it := s.records()[0].Items[0]
	if got := time.UnixMilli(it.TS).UTC().Format(time.RFC3339Nano); got != "2011-10-11T11:45:40.276Z" || it.TSStatus != record.TSOK {
		t.Errorf("stored %s %v", got, it.TSStatus)
	}
	browser := intake.Source{Project: 1, KeyKind: record.KeyBrowser, Key: 1}
	if _, err := s.service.Track(context.Background(), browser, body); fault.CodeOf(err) != api.CodeForbidden {
		t.Errorf("got %v", err)
	}
}

func TestIdentifyAndAlias(t *testing.T) {
	s := newSystem(t)
	for range 5 {
		if err := s.service.Identify(context.Background(), server, []byte(`{"anon_id":"a","user_id":"u","traits":{"plan":"pro"},"ts":"2026-05-01T09:00:00Z","session_id":"s"}`)); err != nil {
			t.Fatal(err)
		}
		if err := s.service.Alias(context.Background(), server, []byte(`{"anon_id":"a","user_id":"u"}`)); err != nil {
			t.Fatal(err)
		}
	}
	counts := map[record.ItemType]int{}
	for _, r := range s.records() {
		for _, it := range r.Items {
			counts[it.Type]++
			if it.AnonID != "a" || it.UserID != "u" || it.Claimed {
				t.Errorf("got %+v", it)
			}
			if it.Type == record.ItemIdentify && (string(it.Traits) != `{"plan":"pro"}` || it.SessionID != "s" || !it.HasTS) {
				t.Errorf("got %+v", it)
			}
		}
	}
	if counts[record.ItemIdentify] != 5 || counts[record.ItemAlias] != 5 {
		t.Errorf("got %v", counts)
	}
	faults := []struct {
		body, field string
		code        api.Code
	}{
		{`{"anon_id":"a"}`, "user_id", api.CodeValidationFailed},
		{`{"user_id":"u"}`, "anon_id", api.CodeValidationFailed},
		{`{"anon_id":"","user_id":"u"}`, "anon_id", api.CodeValidationFailed},
		{`{"anon_id":"a","user_id":7}`, "user_id", api.CodeValidationFailed},
		{`{"anon_id":"a","user_id":"u","traits":[]}`, "traits", api.CodeValidationFailed},
		{`{"anon_id":"a","user_id":"u","traits":{"x":1e999}}`, "traits", api.CodeValidationFailed},
		{`{"anon_id":"a","user_id":"u","ts":1714557600}`, "ts", api.CodeValidationFailed},
		{`{"anon_id":"a","user_id":"u","session_id":""}`, "session_id", api.CodeValidationFailed},
		{`{"anon_id":"a","anon_id":"b","user_id":"u"}`, "", api.CodeInvalidJSON},
		{`[`, "", api.CodeInvalidJSON},
		{`[]`, "", api.CodeValidationFailed},
	}
	for _, tt := range faults {
		err := s.service.Identify(context.Background(), server, []byte(tt.body))
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != tt.code || (tt.field != "" && f.Details["field"] != tt.field) {
			t.Errorf("%s: got %v", tt.body, err)
		}
	}
}

// One tenant's bytes must never end up in another's event, although buffers
// are used again and again.
func TestBuffersAreNotShared(t *testing.T) {
	s := newSystem(t)
	var wg sync.WaitGroup
	for project := uint32(1); project <= 8; project++ {
		wg.Go(func() {
			src := intake.Source{Project: project, KeyKind: record.KeyServer, Key: int64(project)}
			buffer := make([]byte, 0, 1<<16)
			for n := range 200 {
				buffer = buffer[:0]
				buffer = append(buffer, `{"events":[`...)
				for i := range 1 + n%7 {
					if i > 0 {
						buffer = append(buffer, ',')
					}
					buffer = fmt.Appendf(buffer, `{"event":"e%d","user_id":"u%d","properties":{"owner":%d,"pad":%q}}`, project, project, project, strings.Repeat("x", n))
				}
				buffer = append(buffer, `]}`...)
				if _, err := s.service.Track(context.Background(), src, buffer); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, r := range s.records() {
		for _, it := range r.Items {
			var properties struct{ Owner uint32 }
			if err := json.Unmarshal(it.Properties, &properties); err != nil {
				t.Fatal(err)
			}
			if properties.Owner != r.Project || it.Event != fmt.Sprintf("e%d", r.Project) || it.UserID != fmt.Sprintf("u%d", r.Project) {
				t.Fatalf("project %d holds %+v", r.Project, it)
			}
		}
	}
}
