package alert_test

import (
	"math"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/alert"
)

// TestHealth: rates are those of the period and the project, and what was not
// seen is not known.
func TestHealth(t *testing.T) {
	t.Parallel()
	h := alert.NewHealth()
	five := alert.Definition{Length: alert.FiveMinutes, Timezone: "UTC"}
	day := alert.Definition{Length: alert.Day, Timezone: "Asia/Kathmandu"}
	for i := range 60 { // an hour: 20 items a minute, 5 of them repeats, and 5 rejected
		at := noon.Add(time.Duration(i) * time.Minute)
		h.Count(7, at, alert.Traffic{Accepted: 20, Duplicates: 5, Rejected: 5})
		h.Lag(at, time.Duration(i)*time.Second)
	}
	h.Count(8, noon, alert.Traffic{Rejected: 3})
	for _, c := range []struct {
		name    string
		kind    alert.Kind
		project uint32
		period  alert.Period
		want    alert.Sample
	}{
		{"duplicates", alert.DuplicateRate, 7, five.At(noon), rate(0.25, 100)},
		{"rejections", alert.RejectionRate, 7, five.At(noon), rate(0.2, 125)},
		{"a day", alert.DuplicateRate, 7, day.At(noon), rate(0.25, 1200)},
		{"before", alert.DuplicateRate, 7, five.At(noon.Add(-time.Minute)), alert.Sample{}},
		{"after", alert.RejectionRate, 7, five.At(noon.Add(time.Hour)), alert.Sample{}},
		{"nothing was accepted", alert.DuplicateRate, 8, five.At(noon), alert.Sample{}},
		{"all were rejected", alert.RejectionRate, 8, five.At(noon), rate(1, 3)},
		{"another project", alert.DuplicateRate, 9, five.At(noon), alert.Sample{}},
		{"the longest wait", alert.LagSeconds, 7, five.At(noon.Add(12 * time.Minute)), known(14)},
		{"no wait was seen", alert.LagSeconds, 7, five.At(noon.Add(2 * time.Hour)), alert.Sample{}},
	} {
		if got := h.Sample(c.kind, c.project, c.period); math.Abs(got.Value-c.want.Value) > 1e-9 || got.Volume != c.want.Volume || got.Known != c.want.Known {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestHealthIsBounded: neither time nor projects make it grow without end, and
// what a day's periods need stays.
func TestHealthIsBounded(t *testing.T) {
	t.Parallel()
	h := alert.NewHealth()
	for i := range 7 * 24 * 60 {
		h.Count(1, noon.Add(time.Duration(i)*time.Minute), alert.Traffic{Accepted: 1})
	}
	end := noon.Add(7 * 24 * time.Hour)
	day, five := alert.Definition{Length: alert.Day, Timezone: "UTC"}, alert.Definition{Length: alert.FiveMinutes, Timezone: "UTC"}
	if got := h.Sample(alert.DuplicateRate, 1, day.At(end.Add(-24*time.Hour))); got.Volume != 24*60 {
		t.Errorf("a day holds %v items", got.Volume)
	}
	if got := h.Sample(alert.DuplicateRate, 1, five.At(end.Add(-2*time.Hour))); got.Volume != 5 {
		t.Errorf("five minutes hold %v items", got.Volume)
	}
	if got := h.Sample(alert.DuplicateRate, 1, day.At(noon.Add(24*time.Hour))); got.Known {
		t.Errorf("the first day is still there: %+v", got)
	}
	for i := range uint32(1500) {
		h.Count(2+i, end.Add(time.Duration(i)*time.Millisecond), alert.Traffic{Accepted: 1})
	}
	if got := h.Sample(alert.DuplicateRate, 1, day.At(end.Add(-24*time.Hour))); got.Known {
		t.Error("the quietest project is still there")
	}
	if got := h.Sample(alert.DuplicateRate, 1501, five.At(end)); !got.Known {
		t.Error("the latest project is not there")
	}
}
