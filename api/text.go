package api

import "time"

// TimeText writes a time as every answer does: RFC 3339, UTC, milliseconds.
func TimeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// OptionalTime writes a time that may be absent, which is the zero time.
func OptionalTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(TimeText(t))
}

// OptionalText is nil for the empty text.
func OptionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
