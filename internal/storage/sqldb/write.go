package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

const (
	// writeAttempts limits how often a transaction is run that others keep
	// pushing aside.
	writeAttempts = 6
	// writeDelay is the longest wait before the second attempt; it doubles
	// with each further one.
	writeDelay = 10 * time.Millisecond
	// reachAgain is the Retry-After when the database cannot be reached.
	reachAgain = time.Second
)

// Write runs fn in a transaction and commits it; when fn fails, nothing is
// written and its error is returned. All writing goes through here. fn may run
// several times, each time from the start and with nothing left of the time
// before; it must use only the queries it is given, and must not wait for
// anything but the database: no network, no other Write.
//
// Besides what fn returns, the fault unavailable is returned with the detail
// "applied": false when the transaction could not begin, "unknown" when the
// answer to its COMMIT was lost.
func (d *DB) Write(ctx context.Context, fn func(*Queries) error) error {
	return d.WriteTx(ctx, func(tx *sql.Tx) error { return fn(New(tx)) })
}

// WriteTx is Write for those who need the transaction itself.
func (d *DB) WriteTx(ctx context.Context, fn func(*sql.Tx) error) error {
	return d.write(ctx, func(_ *sql.Conn, tx *sql.Tx) error { return fn(tx) })
}

// write runs fn in a transaction on a connection, again while others push it
// aside.
func (d *DB) write(ctx context.Context, fn func(*sql.Conn, *sql.Tx) error) error {
	delay := writeDelay
	for attempt := 1; ; attempt++ {
		err := onConn(ctx, d.writer, fn)
		if err == nil || !d.dialect.repeatable(err) {
			return err
		}
		if attempt == writeAttempts {
			return unavailable(err, "too many changes at the same time", false)
		}
		if waitErr := wait(ctx, rand.N(delay)); waitErr != nil { //nolint:gosec // a delay is no secret
			return errors.Join(err, waitErr)
		}
		delay *= 2
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait to repeat a transaction: %w", context.Cause(ctx))
	}
}

// inTx runs fn in a transaction.
func inTx(ctx context.Context, pool *sql.DB, fn func(*sql.Tx) error) error {
	return onConn(ctx, pool, func(_ *sql.Conn, tx *sql.Tx) error { return fn(tx) })
}

// onConn runs fn in a transaction on a connection. The context ends the wait for a connection
// and fn's own statements, but never a COMMIT under way: its outcome would be
// unknown without need.
func onConn(ctx context.Context, pool *sql.DB, fn func(*sql.Conn, *sql.Tx) error) (err error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return unavailable(err, "the database cannot be reached", false)
	}
	defer func() { err = errors.Join(err, release(conn)) }()
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return unavailable(err, "the database did not begin a transaction", false)
	}
	finished := false
	defer func() {
		if !finished { // fn failed or panicked
			err = errors.Join(err, discard(conn, tx.Rollback()))
		}
	}()
	if err := fn(conn, tx); err != nil {
		return err
	}
	finished = true
	if err := tx.Commit(); err != nil {
		return unavailable(errors.Join(err, discard(conn, err)), "the database did not confirm the change", fault.AppliedUnknown)
	}
	return nil
}

func unavailable(err error, message string, applied any) error {
	return fault.Wrap(api.CodeUnavailable, err, "%s", message).With("applied", applied).After(reachAgain)
}

// release gives the connection back; one that was discarded is gone already.
func release(conn *sql.Conn) error {
	if err := conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("give a connection back: %w", err)
	}
	return nil
}

// discard throws a connection away on which the end of a transaction has
// failed: the transaction may still be open there, and would swallow the next.
// It returns nil when cause is nil.
func discard(conn *sql.Conn, cause error) error {
	if cause == nil {
		return nil
	}
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if err != nil && !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("discard a connection: %w", errors.Join(cause, err))
	}
	return nil
}
