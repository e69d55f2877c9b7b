package sendfile

import (
	"strings"
	"time"
)

// Layouts of a time after normalize. A fraction after the seconds is read by
// time.Parse even though no layout names it.
const localLayout = "2006-01-02T15:04:05"

var offsetLayouts = []string{localLayout + "Z07:00", localLayout + "Z0700", localLayout + "Z07"}

// formatTS returns the JSON of an item's ts for a cell: a whole number as it
// is (milliseconds since 1970), a time in UTC in RFC 3339 with its fraction,
// and anything else as the string it is, for the server to reject. A time
// without an offset is read in loc.
func formatTS(cell string, loc *time.Location) string {
	trimmed := strings.TrimSpace(cell)
	if isInteger(trimmed) {
		return trimmed
	}
	if t, ok := parseTime(trimmed, loc); ok {
		return `"` + t.UTC().Format(time.RFC3339Nano) + `"`
	}
	return quote(cell)
}

// isInteger reports whether the text is a whole number as JSON writes it.
func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || (digits[0] == '0' && len(digits) > 1) {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// parseTime reads RFC 3339 and its usual variants: a space for the T, an
// offset with or without colon or minutes, or no offset at all.
func parseTime(s string, loc *time.Location) (time.Time, bool) {
	s = normalize(s)
	for _, layout := range offsetLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, inYears(t)
		}
	}
	wall, err := time.Parse(localLayout, s)
	if err != nil {
		return time.Time{}, false
	}
	t := inZone(wall, loc)
	return t, inYears(t)
}

// inYears reports whether RFC 3339 can express the time in UTC.
func inYears(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 0 && year <= 9999
}

// normalize turns the separator between date and time into a T, drops a space
// before the offset and makes a trailing z a Z.
func normalize(s string) string {
	const date = len("2006-01-02")
	if len(s) <= date+1 || (s[date] != ' ' && s[date] != 't' && s[date] != 'T') {
		return s
	}
	clock := strings.Replace(s[date+1:], " ", "", 1)
	if strings.HasSuffix(clock, "z") {
		clock = clock[:len(clock)-1] + "Z"
	}
	return s[:date] + "T" + clock
}

// inZone returns the moment at which clocks in loc showed wall's date and
// time. Where they showed it twice, that is the first of the two; where they
// skipped it, the moment as if they had not been put forward yet.
func inZone(wall time.Time, loc *time.Location) time.Time {
	const aDay = 24 * time.Hour
	_, before := wall.Add(-aDay).In(loc).Zone()
	_, after := wall.Add(aDay).In(loc).Zone()
	for _, offset := range []int{max(before, after), min(before, after)} {
		t := wall.Add(-time.Duration(offset) * time.Second).In(loc)
		if _, own := t.Zone(); own == offset {
			return t
		}
	}
	return wall.Add(-time.Duration(before) * time.Second).In(loc)
}
