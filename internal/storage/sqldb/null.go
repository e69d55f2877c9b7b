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

// NullFloat is a column of numbers that is null for nil.
func NullFloat(v *float64) sql.NullFloat64 {
	if v == nil {
		return sql.NullFloat64{}
	}
	return sql.NullFloat64{Float64: *v, Valid: true}
}

// FloatOf reads what NullFloat has written.
func FloatOf(n sql.NullFloat64) *float64 {
	if !n.Valid {
		return nil
	}
	return &n.Float64
}
