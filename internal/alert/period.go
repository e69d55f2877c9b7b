package alert

import (
	"time"

	"github.com/actionpulse/actionpulse/internal/query"
)

// Length names how long the periods of an alert are. Days are those of the
// alert's time zone, however long they are; all others begin at multiples of
// their length since midnight UTC.
type Length string

// The lengths.
const (
	FiveMinutes    Length = "5m"
	QuarterHour    Length = "15m"
	HalfHour       Length = "30m"
	Hour           Length = "1h"
	SixHours       Length = "6h"
	TwelveHours    Length = "12h"
	Day            Length = "1d"
	dayMS                 = int64(24 * time.Hour / time.Millisecond)
	longestDayMS          = 2 * dayMS
	maxDaysInRange        = 10
)

// fixed are the lengths that are always the same.
var fixed = map[Length]time.Duration{
	FiveMinutes: 5 * time.Minute, QuarterHour: 15 * time.Minute, HalfHour: 30 * time.Minute,
	Hour: time.Hour, SixHours: 6 * time.Hour, TwelveHours: 12 * time.Hour,
}

// Period is a half-open range of time that is judged as a whole.
type Period struct{ Start, End time.Time }

// window is the period as queries take it.
func (p Period) window() query.Window {
	return query.Window{From: p.Start.UnixMilli(), To: p.End.UnixMilli()}
}

// At returns the period that holds a moment.
func (d *Definition) At(t time.Time) Period {
	if length, ok := fixed[d.Length]; ok {
		start := t.UTC().Truncate(length)
		return Period{Start: start, End: start.Add(length)}
	}
	ms := t.UnixMilli()
	days, _ := query.NewCalendar(query.Day, d.zone(), ms, ms+longestDayMS).Buckets(maxDaysInRange)
	return Period{Start: time.UnixMilli(days[0].At).UTC(), End: time.UnixMilli(days[1].At).UTC()}
}

// After returns the period that follows.
func (d *Definition) After(p Period) Period { return d.At(p.End) }

// before returns the period before another one.
func (d *Definition) before(p Period) Period { return d.At(p.Start.Add(-time.Millisecond)) }

// daysBefore returns the period at the same time of day, in the alert's time
// zone, some days earlier.
func (d *Definition) daysBefore(p Period, days int) Period {
	length, ok := fixed[d.Length]
	if !ok {
		for range days {
			p = d.before(p)
		}
		return p
	}
	t := p.Start.In(d.zone())
	start := time.Date(t.Year(), t.Month(), t.Day()-days, t.Hour(), t.Minute(), 0, 0, d.zone()).UTC()
	return Period{Start: start, End: start.Add(length)}
}

// baseline returns the periods that one is compared with, the latest first.
func (d *Definition) baseline(p Period) []Period {
	c := &d.Condition
	if c.Type != Change {
		return nil
	}
	var all []Period
	for i := range c.periods() {
		switch c.Baseline {
		case MeanOfDays:
			all = append(all, d.daysBefore(p, i+1))
		default:
			p = d.before(p)
			all = append(all, p)
		}
	}
	return all
}

// first is the period that an alert begins with: the last one that could have
// been judged by now, but none that begins before after.
func (d *Definition) first(now, after time.Time) Period {
	p := d.before(d.At(now))
	for p.Start.Before(after) {
		p = d.After(p)
	}
	return p
}

// zone is the alert's time zone, which validate has looked up once.
func (d *Definition) zone() *time.Location {
	zone, err := time.LoadLocation(d.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}
