package quota

import (
	"fmt"
	"time"
)

// Month is a calendar month of UTC: the year times 100 and the month's number,
// such as 202611.
type Month int32

// MonthAt returns the month of a time in milliseconds since 1970.
func MonthAt(at int64) Month { return MonthOf(time.UnixMilli(at)) }

// MonthOf returns the month of a time, wherever its offset.
func MonthOf(at time.Time) Month {
	year, month, _ := at.UTC().Date()
	return Month(year*100 + int(month))
}

// ParseMonth reads a month such as 2026-11.
func ParseMonth(text string) (Month, bool) {
	at, err := time.Parse("2006-01", text)
	return MonthOf(at), err == nil
}

// Begin returns the month's first instant.
func (m Month) Begin() time.Time {
	return time.Date(int(m/100), time.Month(m%100), 1, 0, 0, 0, 0, time.UTC)
}

// End returns the first instant of the next month.
func (m Month) End() time.Time { return m.Begin().AddDate(0, 1, 0) }

// String returns a form such as 2026-11.
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m/100, m%100) }
