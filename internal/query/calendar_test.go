package query

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func milli(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

func TestBuckets(t *testing.T) {
	for name, c := range map[string]struct {
		interval       Interval
		zone, from, to string
		wanted         []string
	}{
		"first bucket begins before the range": {
			Hour, "UTC", "2024-01-01T10:30:00Z", "2024-01-01T12:00:00Z",
			[]string{"2024-01-01T10:00:00Z", "2024-01-01T11:00:00Z"},
		},
		"weeks begin on Monday": {
			Week, "UTC", "2024-01-03T00:00:00Z", "2024-01-16T00:00:00Z",
			[]string{"2024-01-01T00:00:00Z", "2024-01-08T00:00:00Z", "2024-01-15T00:00:00Z"},
		},
		"before 1970": {
			Week, "UTC", "1969-12-31T00:00:00Z", "1970-01-06T00:00:00Z",
			[]string{"1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		},
		"an hour that comes twice": {
			Hour, "America/New_York", "2024-11-03T05:00:00Z", "2024-11-03T08:00:00Z",
			[]string{"2024-11-03T05:00:00Z", "2024-11-03T06:00:00Z", "2024-11-03T07:00:00Z"},
		},
		"an hour that is left out": {
			Hour, "America/New_York", "2024-03-10T06:00:00Z", "2024-03-10T08:00:00Z",
			[]string{"2024-03-10T06:00:00Z", "2024-03-10T07:00:00Z"},
		},
		"a day of 23 hours": {
			Day, "Europe/Berlin", "2024-03-30T23:00:00Z", "2024-04-01T22:00:00Z",
			[]string{"2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z"},
		},
		"a day of 25 hours": {
			Day, "Europe/Berlin", "2024-10-27T10:00:00Z", "2024-10-28T10:00:00Z",
			[]string{"2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z"},
		},
		"clocks change at midnight": {
			Day, "Africa/Cairo", "2024-04-25T00:00:00Z", "2024-04-27T00:00:00Z",
			[]string{"2024-04-24T22:00:00Z", "2024-04-25T22:00:00Z", "2024-04-26T21:00:00Z"},
		},
		"a day that never was": {
			Day, "Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z",
			[]string{"2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		},
		"half an hour back": {
			Hour, "Australia/Lord_Howe", "2024-04-06T14:00:00Z", "2024-04-06T17:00:00Z",
			[]string{"2024-04-06T14:00:00Z", "2024-04-06T15:00:00Z", "2024-04-06T15:30:00Z", "2024-04-06T16:30:00Z"},
		},
		"half hours from UTC": {
			Day, "Asia/Kolkata", "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z",
			[]string{"2023-12-31T18:30:00Z", "2024-01-01T18:30:00Z"},
		},
		"months": {
			Month, "America/New_York", "2024-02-15T00:00:00Z", "2024-04-15T00:00:00Z",
			[]string{"2024-02-01T05:00:00Z", "2024-03-01T05:00:00Z", "2024-04-01T04:00:00Z"},
		},
		"years": {
			Year, "UTC", "2023-06-01T00:00:00Z", "2025-01-01T00:00:00Z",
			[]string{"2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z"},
		},
		"the last day of a leap year": {
			Day, "America/New_York", "2040-12-30T12:00:00Z", "2041-01-01T12:00:00Z",
			[]string{"2040-12-30T05:00:00Z", "2040-12-31T05:00:00Z", "2041-01-01T05:00:00Z"},
		},
	} {
		calendar := NewCalendar(c.interval, location(t, c.zone), milli(t, c.from), milli(t, c.to))
		buckets, ok := calendar.Buckets(100)
		if !ok || len(buckets) != len(c.wanted) {
			t.Errorf("%s: %d buckets, want %d: %+v", name, len(buckets), len(c.wanted), buckets)
			continue
		}
		for i, b := range buckets {
			if got := secondText(b.At); got != c.wanted[i] {
				t.Errorf("%s: bucket %d at %s, want %s", name, i, got, c.wanted[i])
			}
		}
	}
}

func TestBucketsLimit(t *testing.T) {
	day := NewCalendar(Day, time.UTC, 0, 10*dayMS)
	if buckets, ok := day.Buckets(10); !ok || len(buckets) != 10 {
		t.Errorf("%d buckets", len(buckets))
	}
	if _, ok := day.Buckets(9); ok {
		t.Error("10 buckets passed a limit of 9")
	}
}

// Every moment of the range has exactly one bucket, and it is the one whose
// local hour or date the moment shows.
func TestEveryMomentHasABucket(t *testing.T) {
	zones := []string{
		"UTC", "America/New_York", "America/Sao_Paulo", "Africa/Cairo", "Africa/Casablanca", "Asia/Kathmandu",
		"Australia/Lord_Howe", "Europe/Dublin", "Pacific/Apia", "America/Scoresbysund", "Europe/Amsterdam",
	}
	layouts := map[Interval]string{Hour: "2006-01-02 15", Day: "2006-01-02", Month: "2006-01", Year: "2006"}
	rapid.Check(t, func(rt *rapid.T) {
		zone := location(t, rapid.SampledFrom(zones).Draw(rt, "zone"))
		interval := rapid.SampledFrom([]Interval{Hour, Day, Week, Month, Year}).Draw(rt, "interval")
		from := rapid.Int64Range(-3_000_000_000_000, 3_000_000_000_000).Draw(rt, "from")
		to := from + rapid.Int64Range(1, 400*dayMS).Draw(rt, "length")
		c := NewCalendar(interval, zone, from, to)
		buckets, ok := c.Buckets(20_000)
		if !ok {
			rt.Fatal("too many buckets")
		}
		keys := map[int64]int64{}
		for i, b := range buckets {
			if i > 0 && b.At <= buckets[i-1].At {
				rt.Fatalf("bucket %d does not follow", i)
			}
			keys[b.Key] = b.At
		}
		for range 20 {
			ts := rapid.Int64Range(from, to-1).Draw(rt, "ts")
			at, ok := keys[c.Key(ts, offsetAt(c.Offsets(from, to), ts))]
			if !ok || at > ts {
				rt.Fatalf("%s has no bucket", milliText(ts))
			}
			layout, named := layouts[interval]
			got, wanted := time.UnixMilli(at).In(zone).Format(layout), time.UnixMilli(ts).In(zone).Format(layout)
			if named && got != wanted {
				rt.Fatalf("%s lies in the bucket of %s", wanted, got)
			}
		}
	})
}

func offsetAt(offsets []Offset, ts int64) int64 {
	ahead := offsets[0].Ahead
	for _, o := range offsets {
		if o.From <= ts {
			ahead = o.Ahead
		}
	}
	return ahead
}
