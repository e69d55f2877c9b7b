package alert_test

import (
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/alert"
)

// TestPeriods: periods follow one another without a gap, a moment lies in its
// own, and days are those of the time zone, whatever its clocks do.
func TestPeriods(t *testing.T) {
	t.Parallel()
	for _, length := range []alert.Length{alert.FiveMinutes, alert.QuarterHour, alert.HalfHour, alert.Hour, alert.SixHours, alert.TwelveHours, alert.Day} {
		for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia", "Australia/Lord_Howe"} {
			d := alert.Definition{Length: length, Timezone: zone}
			location, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			p := d.At(time.Date(2011, 12, 25, 0, 0, 0, 0, time.UTC)) // Samoa left out the 30th
			for range 600 {
				next := d.After(p)
				if !next.Start.Equal(p.End) || !next.End.After(next.Start) {
					t.Fatalf("%s in %s: %v is followed by %v", length, zone, p, next)
				}
				if d.At(next.Start) != next || d.At(next.End.Add(-time.Millisecond)) != next {
					t.Fatalf("%s in %s: the moments of %v lie elsewhere", length, zone, next)
				}
				if a, b := next.Start.In(location), next.End.Add(-time.Millisecond).In(location); length == alert.Day && (a.YearDay() != b.YearDay() || a.Year() != b.Year()) {
					t.Fatalf("in %s %v to %v is not one day", zone, a, b)
				}
				p = next
			}
		}
	}
}
