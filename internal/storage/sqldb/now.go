package sqldb

import (
	"context"
	"fmt"
	"time"
)

// Now is the time by the clock that all processes share which use the store:
// PostgreSQL's own; with SQLite, this machine's.
func (d *DB) Now(ctx context.Context) (time.Time, error) {
	text := d.dialect.now()
	if text == "" {
		return d.clock().UTC().Truncate(time.Microsecond), nil
	}
	var micros int64
	if err := d.reader.QueryRowContext(ctx, text).Scan(&micros); err != nil {
		return time.Time{}, fmt.Errorf("read the time of %s: %w", d.dialect, err)
	}
	return time.UnixMicro(micros).UTC(), nil
}
