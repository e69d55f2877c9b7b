package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// errBusy is returned while a reader still needs the write-ahead log.
var errBusy = errors.New("the write-ahead log is being read")

// Scrub leaves nothing in the store's files of what was overwritten or deleted
// before. On PostgreSQL that is the business of its vacuum, and Scrub does
// nothing. An error says that it is to be tried again.
func (d *DB) Scrub(ctx context.Context) error { return d.dialect.scrub(ctx, d.writer) }

// scrub empties the write-ahead log: in the file itself what is deleted is
// overwritten at once.
func (s sqliteDialect) scrub(ctx context.Context, writer *sql.DB) error {
	var busy, frames, moved int
	if err := writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
		return fmt.Errorf("empty the write-ahead log: %w", err)
	}
	if busy != 0 {
		return fmt.Errorf("empty the write-ahead log: %w", errBusy)
	}
	return nil
}

func (p postgresDialect) scrub(context.Context, *sql.DB) error { return nil }
