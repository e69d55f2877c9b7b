package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// errBusy is returned while a reader still needs the write-ahead log.
var errBusy = errors.New("the write-ahead log is being read")

// Scrub leaves nothing in the store's files of what was overwritten or deleted
// before. On PostgreSQL that is the business of its vacuum, and Scrub does
// nothing. An error says that it is to be tried again. It never waits for
// readers, as writers would then wait with it.
func (d *DB) Scrub(ctx context.Context) error { return d.dialect.scrub(ctx, d.writer) }

// scrub empties the write-ahead log: in the file itself what is deleted is
// overwritten at once.
func (s sqliteDialect) scrub(ctx context.Context, writer *sql.DB) error {
	conn, err := writer.Conn(ctx)
	if err == nil {
		err = errors.Join(emptyLog(ctx, conn), conn.Close())
	}
	if err != nil {
		return fmt.Errorf("empty the write-ahead log: %w", err)
	}
	return nil
}

// emptyLog returns errBusy at once while there is somebody who reads. The
// connection waits for locks as before when it returns, or is given up.
func emptyLog(ctx context.Context, conn *sql.Conn) (err error) {
	defer func() {
		if _, failed := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA busy_timeout = "+busyTimeout); failed != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			err = errors.Join(err, failed)
		}
	}()
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	var busy, frames, moved int
	if err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return errBusy
	}
	return nil
}

func (p postgresDialect) scrub(context.Context, *sql.DB) error { return nil }
