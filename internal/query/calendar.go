package query

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Interval is a unit of the calendar.
type Interval string

// The intervals.
const (
	Hour  Interval = "hour"
	Day   Interval = "day"
	Week  Interval = "week"
	Month Interval = "month"
	Year  Interval = "year"
)

const (
	hourMS = int64(time.Hour / time.Millisecond)
	dayMS  = 24 * hourMS
	weekMS = 7 * dayMS
	// mondayMS is the first Monday after the epoch.
	mondayMS = 4 * dayMS
)

// Calendar cuts a range of time into the intervals of one time zone.
//
// A moment's bucket has a key: for hours the moment the local hour began, had
// the offset not changed within it; for longer intervals the local time the
// interval began, written as if it were UTC. So the two hours that are both
// called 01:00 when clocks go back are two buckets, and a day is one bucket
// however long it is.
type Calendar struct {
	Interval Interval
	zone     *time.Location
	from, to int64
}

// NewCalendar returns the calendar of [from, to), in milliseconds since 1970.
func NewCalendar(interval Interval, zone *time.Location, from, to int64) Calendar {
	return Calendar{Interval: interval, zone: zone, from: from, to: to}
}

// Offset is what the zone's clocks are ahead of UTC from a moment on, all in
// milliseconds.
type Offset struct {
	From  int64
	Ahead int64
}

// Offsets returns the offsets that are in force in [from, to), in order. The
// first one holds from the beginning of time.
func (c Calendar) Offsets(from, to int64) []Offset {
	offsets := []Offset{{From: math.MinInt64, Ahead: c.ahead(from)}}
	for at := from; ; {
		_, end := time.UnixMilli(at).In(c.zone).ZoneBounds()
		switch {
		case end.IsZero():
			return offsets
		case end.UnixMilli() > at:
			at = end.UnixMilli()
		default:
			// On the last day of leap years Go takes the year to be over.
			at += dayMS
		}
		if at >= to {
			return offsets
		}
		if ahead := c.ahead(at); ahead != offsets[len(offsets)-1].Ahead {
			offsets = append(offsets, Offset{From: at, Ahead: ahead})
		}
	}
}

// ahead returns the offset in force at a moment.
func (c Calendar) ahead(ts int64) int64 {
	_, seconds := time.UnixMilli(ts).In(c.zone).Zone()
	return int64(seconds) * 1000
}

// Key returns the key of a moment's bucket under an offset.
func (c Calendar) Key(ts, ahead int64) int64 {
	local := ts + ahead
	switch c.Interval {
	case Hour:
		return floor(local, hourMS) - ahead
	case Day:
		return floor(local, dayMS)
	case Week:
		return floor(local-mondayMS, weekMS) + mondayMS
	}
	t := time.UnixMilli(local).UTC()
	if c.Interval == Month {
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	}
	return time.Date(t.Year(), time.January, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// Ordinal numbers buckets by key so that the next interval's number is one
// higher. Hours have none.
func (c Calendar) Ordinal(key int64) int64 {
	switch c.Interval {
	case Day:
		return key / dayMS
	case Week:
		return (key - mondayMS) / weekMS
	}
	t := time.UnixMilli(key).UTC()
	if c.Interval == Month {
		return int64(t.Year())*12 + int64(t.Month()) - 1
	}
	return int64(t.Year())
}

// Bucket is one interval of a calendar.
type Bucket struct {
	Key int64
	// At is the moment the bucket begins, which for the first one may lie
	// before the calendar's range.
	At int64
}

// Buckets returns the buckets that overlap the range, in order, or false if
// there are more than limit.
func (c Calendar) Buckets(limit int) ([]Bucket, bool) {
	if (c.to-c.from)/c.longest() > int64(limit) {
		return nil, false
	}
	var buckets []Bucket
	seen := map[int64]bool{}
	offsets := c.Offsets(c.from, c.to)
	for i, o := range offsets {
		end := c.to
		if i+1 < len(offsets) {
			end = offsets[i+1].From
		}
		for at := max(o.From, c.from); at < end; {
			key := c.Key(at, o.Ahead)
			if !seen[key] {
				seen[key] = true
				buckets = append(buckets, Bucket{Key: key, At: at})
			}
			if len(buckets) > limit {
				return nil, false
			}
			at = c.next(key, o.Ahead)
		}
	}
	if len(buckets) > 0 {
		buckets[0].At = c.begin(buckets[0].Key)
	}
	slices.SortFunc(buckets, func(a, b Bucket) int { return cmp.Compare(a.At, b.At) })
	return buckets, true
}

// next returns the moment at which the bucket after key begins if the offset
// stays.
func (c Calendar) next(key, ahead int64) int64 {
	switch c.Interval {
	case Hour:
		return key + hourMS
	case Day:
		return key + dayMS - ahead
	case Week:
		return key + weekMS - ahead
	}
	t := time.UnixMilli(key).UTC()
	if c.Interval == Month {
		return t.AddDate(0, 1, 0).UnixMilli() - ahead
	}
	return t.AddDate(1, 0, 0).UnixMilli() - ahead
}

// begin returns the first moment of the bucket that holds the range's start.
func (c Calendar) begin(key int64) int64 {
	start := c.from
	for {
		at := key
		if c.Interval != Hour {
			at -= c.ahead(start)
		}
		bounds, _ := time.UnixMilli(start).In(c.zone).ZoneBounds()
		change := bounds.UnixMilli()
		if bounds.IsZero() || at >= change || change > start {
			return at
		}
		if c.Key(change-1, c.ahead(change-1)) != key {
			return change
		}
		start = change - 1
	}
}

// longest returns a length that no interval exceeds, in milliseconds.
func (c Calendar) longest() int64 {
	switch c.Interval {
	case Hour:
		return hourMS + hourMS/2
	case Day:
		return 2 * dayMS
	case Week:
		return weekMS + dayMS
	case Month:
		return 32 * dayMS
	default:
		return 367 * dayMS
	}
}

func floor(v, unit int64) int64 {
	r := v % unit
	if r < 0 {
		r += unit
	}
	return v - r
}
