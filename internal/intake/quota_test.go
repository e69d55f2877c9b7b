package intake_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/record"
)

const may = quota.Month(202605) // of newClock

// newMetered is a system under plans: of 5 events, of 100 as a trial, of 300
// bytes, and without limits. The default one is of 5 events.
func newMetered(t *testing.T) (*system, *quota.Meter) {
	t.Helper()
	meter := quota.NewMeter(quota.NewPlans([]quota.Plan{
		{Name: "five", Events: 5}, {Name: "trial", Events: 100, Trial: true}, {Name: "bytes", Storage: 300}, {Name: "paid"},
	}, "five"), may)
	s := newSystem(t)
	s.quota = meter
	s.restart()
	return s, meter
}

func of(project uint32, plan string) intake.Source {
	return intake.Source{Project: project, KeyKind: record.KeyServer, Key: 1, Organization: "o", Plan: plan}
}

// mustRefuse sends a batch and demands that the quota refuses it.
func (s *system) mustRefuse(src intake.Source, code api.Code, body []byte) {
	s.t.Helper()
	if f := s.refusal(src, body); f == nil || f.Code != code || f.RetryAfter != 0 {
		s.t.Fatalf("got %v, want %s", f, code)
	}
}

// refusal sends a batch and returns its refusal, nil if it is taken.
func (s *system) refusal(src intake.Source, body []byte) *fault.Error {
	s.t.Helper()
	_, err := s.service.Track(context.Background(), src, body)
	f, ok := errors.AsType[*fault.Error](err)
	if err != nil && !ok {
		s.t.Fatal(err)
	}
	return f
}

// mustEqualStored demands that the meter has counted exactly what is stored.
func (s *system) mustEqualStored(meter *quota.Meter, month quota.Month, projects ...uint32) quota.Usage {
	s.t.Helper()
	var want, got quota.Usage
	for _, r := range s.records() {
		for i := range r.Items {
			if r.Items[i].Type != record.ItemAlias && quota.MonthAt(r.Received) == month {
				want.Events++
				want.Bytes += int64(record.EncodedSize(&r.Items[i]))
			}
		}
	}
	all, _ := meter.Usage(month, projects)
	for _, u := range all {
		got.Events += u.Events
		got.Bytes += u.Bytes
	}
	if got != want {
		s.t.Fatalf("counted %+v, stored %+v", got, want)
	}
	return got
}

func news(n int) (ids, items []string) {
	for range n {
		id := uuid.NewString()
		ids, items = append(ids, id), append(items, item(id))
	}
	return ids, items
}

// TestQuotaIsTakenWholeWhileAnyIsLeft, and what is known costs nothing.
func TestQuotaIsTakenWholeWhileAnyIsLeft(t *testing.T) {
	s, meter := newMetered(t)
	src := of(1, "")
	_, first := news(4)
	s.expect(src, batch(first...), 4, 0)
	s.expect(src, batch(first...), 4, 4) // the answer was lost
	_, second := news(3)
	s.expect(src, batch(second...), 3, 0) // one was left
	f := s.refusal(src, batch(item(uuid.NewString())))
	if f == nil || f.Code != api.CodeQuotaExceeded || f.Details["resets_at"] != "2026-06-01T00:00:00.000Z" || f.Details["limit"] != int64(5) || f.Details["resource"] != api.ResourceEvents ||
		f.Message != "the organization's quota of 5 events for 2026-05 is used up" {
		t.Errorf("%s, %v", f.Message, f.Details)
	}
	s.expect(src, batch(first...), 4, 4)
	s.expect(src, batch(second[0], first[0], second[0]), 3, 3)
	s.mustRefuse(src, api.CodeQuotaExceeded, batch(first[0], item(uuid.NewString()))) // one new one is enough
	s.mustRefuse(src, api.CodeQuotaExceeded, batch(`{"event":"e","anon_id":"x"}`))    // nobody knows whether it is
	if r := s.track(src, batch(`{"event":"","anon_id":"x"}`)); len(r.Rejected) != 1 {
		t.Errorf("what is rejected needs no quota: %+v", r)
	}
	identify := s.service.Identify(context.Background(), src, []byte(`{"anon_id":"a","user_id":"u"}`))
	if fault.CodeOf(identify) != api.CodeQuotaExceeded {
		t.Errorf("identify: %v", identify)
	}
	if err := s.service.Alias(context.Background(), src, []byte(`{"anon_id":"a","user_id":"u"}`)); err != nil {
		t.Errorf("alias: %v", err)
	}
	other := src
	other.Organization, other.Project = "another", 9
	s.expect(other, batch(item(uuid.NewString())), 1, 0)
	if u := s.mustEqualStored(meter, may, 1, 9); u.Events != 8 {
		t.Errorf("%+v", u)
	}
}

// TestARefusedRequestLeavesNoClaim: under another plan it is new, not a
// duplicate.
func TestARefusedRequestLeavesNoClaim(t *testing.T) {
	s, meter := newMetered(t)
	_, items := news(5)
	s.expect(of(1, "five"), batch(items...), 5, 0)
	ids, more := news(3)
	s.mustRefuse(of(1, "five"), api.CodeQuotaExceeded, batch(more...))
	s.restart()
	s.mustRefuse(of(1, "five"), api.CodeQuotaExceeded, batch(more...))
	s.expect(of(1, "paid"), batch(more...), 3, 0)
	s.expect(of(1, "five"), batch(more...), 3, 3)
	for _, id := range ids {
		if n := s.stored()[id]; n != 1 {
			t.Errorf("%s is stored %d times", id, n)
		}
	}
	s.mustEqualStored(meter, may, 1)
}

// TestIdentifyCountsOneAndATrialSaysSo, also when it is the last.
func TestIdentifyCountsOneAndATrialSaysSo(t *testing.T) {
	s, meter := newMetered(t)
	src := of(1, "trial")
	for range 100 {
		if err := s.service.Identify(context.Background(), src, []byte(`{"anon_id":"a","user_id":"u","traits":{"a":1}}`)); err != nil {
			t.Fatal(err)
		}
	}
	s.mustRefuse(src, api.CodeTrialQuotaExceeded, batch(item(uuid.NewString())))
	if u := s.mustEqualStored(meter, may, 1); u.Events != 100 {
		t.Errorf("%+v", u)
	}
}

// TestStorageIsAQuotaToo, of the bytes that are stored.
func TestStorageIsAQuotaToo(t *testing.T) {
	s, meter := newMetered(t)
	src, taken := of(1, "bytes"), int64(0)
	for taken < 300 {
		s.expect(src, batch(item(uuid.NewString())), 1, 0)
		taken = s.mustEqualStored(meter, may, 1).Bytes
	}
	f := s.refusal(src, batch(item(uuid.NewString())))
	if f == nil || f.Code != api.CodeQuotaExceeded || f.Details["resource"] != api.ResourceStorage || f.Details["limit"] != int64(300) ||
		f.Message != "the organization's quota of 300 bytes of storage for 2026-05 is used up" {
		t.Errorf("%s, %v", f.Message, f.Details)
	}
}

// TestTheMonthTurns by the time of receipt, to the millisecond.
func TestTheMonthTurns(t *testing.T) {
	s, meter := newMetered(t)
	src := of(1, "five")
	end := may.End()
	s.clock.pass(end.Sub(s.clock.Wall()) - time.Millisecond)
	s.restart() // so far ahead is only believed at a start
	_, items := news(5)
	s.expect(src, batch(items...), 5, 0)
	late := item(uuid.NewString())
	s.mustRefuse(src, api.CodeQuotaExceeded, batch(late))
	s.clock.pass(time.Millisecond)
	s.expect(src, batch(late), 1, 0)
	s.expect(src, batch(items...), 5, 5)
	s.clock.jump(-time.Hour) // the clock goes back, the month does not
	_, more := news(4)
	s.expect(src, batch(more...), 4, 0)
	if f := s.refusal(src, batch(item(uuid.NewString()))); f.Details["resets_at"] != "2026-07-01T00:00:00.000Z" {
		t.Errorf("%v", f.Details)
	}
	if u := s.mustEqualStored(meter, may, 1); u.Events != 5 {
		t.Errorf("May: %+v", u)
	}
	if u := s.mustEqualStored(meter, may+1, 1); u.Events != 5 {
		t.Errorf("June: %+v", u)
	}
}

// TestFiftySendersAtTheBoundary: two projects share a quota, and what is taken
// is exactly what the rule allows. Each sender repeats each request once, which
// must not cost anything.
func TestFiftySendersAtTheBoundary(t *testing.T) {
	for _, size := range []int{1, 7} {
		s, meter := newMetered(t)
		var accepted, refused atomic.Int64
		var wg sync.WaitGroup
		for sender := range 50 {
			wg.Go(func() {
				src := of(1+uint32(sender%2), "trial")
				for range 6 {
					_, items := news(size)
					for range 2 {
						r, err := s.service.Track(context.Background(), src, batch(items...))
						switch {
						case err == nil:
							accepted.Add(int64(r.Accepted - r.Duplicates))
						case fault.CodeOf(err) == api.CodeTrialQuotaExceeded:
							refused.Add(1)
						default:
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		want := int64((100 + size - 1) / size * size)
		u := s.mustEqualStored(meter, may, 1, 2)
		if accepted.Load() != want || u.Events != want || refused.Load() != 2*(300-want/int64(size)) {
			t.Errorf("%d at once: accepted %d, counted %d, refused %d; want %d", size, accepted.Load(), u.Events, refused.Load(), want)
		}
	}
}
