package intake

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// minMillis is the smallest number taken for milliseconds since 1970; a
	// smaller one can only be seconds.
	minMillis = 100_000_000_000
	// firstMillis and lastMillis begin and end the years that RFC 3339 can
	// write in UTC, 0000 to 9999; an offset can lead out of them.
	firstMillis = -62_167_219_200_000
	lastMillis  = 253_402_300_799_999
)

// parseTime reads a time in RFC 3339 or as an integer of milliseconds since
// 1970, and returns milliseconds.
func (p *parser) parseTime(value jsontext.Value) (int64, bool) {
	if text, ok := p.text(value); ok {
		return parseRFC3339(text)
	}
	ms, err := strconv.ParseInt(string(value), 10, 64)
	return ms, err == nil && ms >= minMillis && ms <= lastMillis
}

// Where the parts of a time lie in its text.
const (
	hourAt     = len("2006-01-02T")
	minuteAt   = len("2006-01-02T15:")
	secondAt   = len("2006-01-02T15:04:")
	secondEnd  = len("2006-01-02T15:04:05")
	offsetSize = len("+00:00")
	longest    = len("2006-01-02T15:04:05.000000000000+00:00")
)

// parseRFC3339 is strict where time.Parse is not, and takes what RFC 3339
// allows and time.Parse does not: lower-case letters, and the second 60 of a
// leap second, which counts as the second after it.
func parseRFC3339(text string) (int64, bool) {
	if len(text) <= secondEnd || len(text) > longest || text[minuteAt-1] != ':' || strings.Contains(text, ",") {
		return 0, false
	}
	b := []byte(text)
	if b[hourAt-1] == 't' {
		b[hourAt-1] = 'T'
	}
	if last := len(b) - 1; b[last] == 'z' {
		b[last] = 'Z'
	} else if b[last] != 'Z' && !validOffset(text[len(text)-offsetSize:]) {
		return 0, false
	}
	leap := text[secondAt:secondEnd] == "60"
	if leap {
		copy(b[secondAt:], "59")
	}
	t, err := time.Parse(time.RFC3339, string(b))
	if err != nil || (leap && !endsMonth(t)) {
		return 0, false
	}
	if leap {
		t = t.Add(time.Second)
	}
	ms := t.UnixMilli()
	return ms, ms >= firstMillis && ms <= lastMillis
}

// validOffset reports whether hours and minutes of an offset are in range; its
// form is left to time.Parse.
func validOffset(offset string) bool {
	return offset[1:3] <= "23" && offset[4:] <= "59"
}

// endsMonth reports whether a leap second can follow t.
func endsMonth(t time.Time) bool {
	next := t.UTC().Truncate(time.Second).Add(time.Second)
	return next.Day() == 1 && next.Hour() == 0 && next.Minute() == 0 && next.Second() == 0
}
