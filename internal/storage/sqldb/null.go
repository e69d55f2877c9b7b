package sqldb

import (
	"database/sql"
	"time"
)

// NullString is a text column that is null for the empty text.
func NullString(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

// NullTime is a column of microseconds that is null for the zero time.
func NullTime(t time.Time) sql.NullInt64 {
	if t.IsZero() {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: true}
}

// TimeOf reads what NullTime has written.
func TimeOf(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}
