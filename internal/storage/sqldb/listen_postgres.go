package sqldb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// closeTimeout limits saying good-bye to a server that may be gone.
const closeTimeout = time.Second

func (p postgresDialect) announce() string { return `SELECT pg_notify($1, '')` }

func (p postgresDialect) now() string {
	return `SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)`
}

// listen has a connection of its own: one of the pool would be given to others
// between two announcements.
func (p postgresDialect) listen(ctx context.Context, changed func()) (err error) {
	conn, err := pgx.ConnectConfig(ctx, p.config.Copy())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, conn.Close(closing))
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return fmt.Errorf("begin to listen: %w", err)
	}
	for {
		changed()
		if err := hear(ctx, conn, listenCheck); err != nil {
			return err
		}
	}
}

// hear returns when there was an announcement, and an error when the
// connection or the context has ended. A connection that is silent for a time
// is asked whether it lives: its other end may have vanished without a word.
func hear(ctx context.Context, conn *pgx.Conn, check time.Duration) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, check)
		_, err := conn.WaitForNotification(waiting)
		silent := err != nil && ctx.Err() == nil && waiting.Err() != nil
		cancel()
		if !silent {
			return err //nolint:wrapcheck // Listen says what it was for
		}
		asking, cancel := context.WithTimeout(ctx, listenCheck)
		_, err = conn.Exec(asking, "SELECT 1")
		cancel()
		if err != nil {
			return fmt.Errorf("ask a silent connection: %w", err)
		}
	}
}
