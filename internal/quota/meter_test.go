package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/quota"
)

// plain counts in the plainest way: every addition is kept, and added up each
// time.
type plain struct {
	made   []quota.Addition
	limits map[string]quota.Plan
}

func (p *plain) used(by func(quota.Addition) bool) (u quota.Usage) {
	for _, a := range p.made {
		if by(a) {
			u.Events += a.Events
			u.Bytes += a.Bytes
		}
	}
	return u
}

// refusal is the code with which an addition is to be refused; empty if it is
// not.
func (p *plain) refusal(a quota.Addition) api.Code {
	plan, ok := p.limits[a.Plan]
	if !ok {
		plan = p.limits["small"] // the default one
	}
	u := p.used(func(b quota.Addition) bool {
		return b.Organization == a.Organization && quota.MonthAt(b.At) == quota.MonthAt(a.At)
	})
	switch {
	case a.Events == 0 || (plan.Events == 0 || u.Events < plan.Events) && (plan.Storage == 0 || u.Bytes < plan.Storage):
		return ""
	case plan.Trial:
		return api.CodeTrialQuotaExceeded
	default:
		return api.CodeQuotaExceeded
	}
}

// TestAgainstAPlainCount: whatever is added, given back and refused, in months
// that come one after another, the meter says what a plain count says.
func TestAgainstAPlainCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []quota.Plan{{Name: "small", Events: 5, Storage: 40}, {Name: "trial", Events: 7, Trial: true}, {Name: "bytes", Storage: 30}, {Name: "paid"}}
		model := &plain{limits: map[string]quota.Plan{}}
		for _, p := range all {
			model.limits[p.Name] = p
		}
		first := quota.Month(202611)
		meter := quota.NewMeter(quota.NewPlans(all, "small"), first)
		now := first.Begin()
		for range rapid.IntRange(1, 40).Draw(t, "additions") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 20 * 24 * time.Hour}).Draw(t, "step"))
			project := rapid.Uint32Range(1, 4).Draw(t, "project")
			a := quota.Addition{
				Organization: []string{"a", "b"}[project%2], Project: project, At: now.UnixMilli(),
				Plan:   rapid.SampledFrom([]string{"", "small", "trial", "bytes", "paid", "dropped"}).Draw(t, "plan"),
				Events: rapid.Int64Range(0, 4).Draw(t, "events"), Bytes: rapid.Int64Range(0, 20).Draw(t, "bytes"),
			}
			if rapid.IntRange(0, 9).Draw(t, "before") == 0 {
				meter.Count(a)
				model.made = append(model.made, a)
				continue
			}
			want, err := model.refusal(a), meter.Admit(a)
			if err == nil && want != "" || err != nil && fault.CodeOf(err) != want {
				t.Fatalf("%+v: %v, want %q", a, err, want)
			}
			switch {
			case err != nil:
			case rapid.IntRange(0, 4).Draw(t, "lost") == 0:
				meter.Return(a)
			default:
				model.made = append(model.made, a)
			}
		}
		for month := first; month <= quota.MonthOf(now); month = quota.MonthOf(month.End()) {
			got, ok := meter.Usage(month, []uint32{1, 2, 3, 4, 5})
			for i := range got {
				want := model.used(func(a quota.Addition) bool {
					return a.Project == uint32(i+1) && quota.MonthAt(a.At) == month
				})
				if !ok || got[i] != want {
					t.Fatalf("%v, project %d: %+v, want %+v", month, i+1, got[i], want)
				}
			}
		}
		if _, ok := meter.Usage(first-1, nil); ok {
			t.Fatal("it says to hold a month that it was not told of")
		}
	})
}

func TestMonth(t *testing.T) {
	for text, want := range map[string]quota.Month{"2026-11": 202611, "0001-01": 101, "2026-12": 202612} {
		m, ok := quota.ParseMonth(text)
		if !ok || m != want || m.String() != text {
			t.Errorf("%s is %d, %v, %v", text, m, m, ok)
		}
	}
	for _, text := range []string{"", "2026", "2026-13", "2026-1", "2026-11-01", "202611", "26-11"} {
		if m, ok := quota.ParseMonth(text); ok {
			t.Errorf("%q is taken for %v", text, m)
		}
	}
	december := quota.Month(202612)
	if got := december.End(); !got.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("December ends at %v", got)
	}
	there := time.Date(2027, 1, 1, 1, 0, 0, 0, time.FixedZone("", 2*60*60)) // in UTC it is December still
	if quota.MonthOf(there) != december || quota.MonthAt(december.End().UnixMilli()) != 202701 || quota.MonthAt(december.End().UnixMilli()-1) != december {
		t.Error("a month is one of UTC")
	}
}

// BenchmarkAdmit is what a request costs the sequencer.
func BenchmarkAdmit(b *testing.B) {
	meter := quota.NewMeter(quota.NewPlans([]quota.Plan{{Name: "large", Events: 1e15, Storage: 1e15}, {Name: "paid"}}, ""), 202611)
	for _, plan := range []string{"paid", "large"} {
		b.Run(plan, func(b *testing.B) {
			a := quota.Addition{Organization: "01980000-0000-7000-8000-00000000000a", Plan: plan, Project: 7, At: 1_796_000_000_000, Events: 500, Bytes: 90_000}
			b.ReportAllocs()
			for b.Loop() {
				if err := meter.Admit(a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
