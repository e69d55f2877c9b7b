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
	// maxMillis is the last millisecond of the year 9999, which RFC 3339 can
	// still write.
	maxMillis = 253_402_300_799_999
)

// parseTime reads a time in RFC 3339 or as an integer of milliseconds since
// 1970, and returns milliseconds.
func (p *parser) parseTime(value jsontext.Value) (int64, bool) {
	if text, ok := p.text(value); ok {
		return parseRFC3339(text)
	}
	ms, err := strconv.ParseInt(string(value), 10, 64)
	return ms, err == nil && ms >= minMillis && ms <= maxMillis
}

// parseRFC3339 is strict where time.Parse is not, and takes the lower-case
// letters that RFC 3339 allows.
func parseRFC3339(text string) (int64, bool) {
	const dateSize = len("2006-01-02")
	const longest = len("2006-01-02T15:04:05.000000000000+00:00")
	if len(text) <= dateSize || len(text) > longest || strings.Contains(text, ",") {
		return 0, false
	}
	b := []byte(text)
	if b[dateSize] == 't' {
		b[dateSize] = 'T'
	}
	if last := len(b) - 1; b[last] == 'z' {
		b[last] = 'Z'
	}
	var t time.Time
	if err := t.UnmarshalText(b); err != nil {
		return 0, false
	}
	return t.UnixMilli(), true
}
