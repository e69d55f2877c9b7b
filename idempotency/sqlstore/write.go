package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	// writeAttempts bounds how often a transaction is run that others keep
	// pushing aside.
	writeAttempts = 6
	// writeDelay is the longest wait before the second attempt; it doubles
	// with each further one. Without it, two could push each other aside again
	// and again.
	writeDelay = 10 * time.Millisecond
)

// writer returns the default of Options.Write.
func writer(db *sql.DB) func(context.Context, func(*sql.Tx) error) error {
	return func(ctx context.Context, fn func(*sql.Tx) error) error {
		delay := writeDelay
		for attempt := 1; ; attempt++ {
			err := inTx(ctx, db, fn)
			if err == nil || attempt == writeAttempts || !repeatable(err) {
				return err
			}
			if waitErr := wait(ctx, rand.N(delay)); waitErr != nil { //nolint:gosec // a delay is no secret
				return errors.Join(err, waitErr)
			}
			delay *= 2
		}
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

// inTx runs fn in a transaction. The context ends the wait for a connection
// and fn's own statements, but never a COMMIT under way: its outcome would be
// unknown without need.
func inTx(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("get a connection: %w", err)
	}
	defer func() { err = errors.Join(err, ignore(conn.Close(), sql.ErrConnDone)) }()
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	finished := false
	defer func() {
		if !finished { // fn failed or panicked
			if tx.Rollback() != nil {
				discard(conn)
			}
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	finished = true
	if err := tx.Commit(); err != nil {
		discard(conn)
		return commitError(err)
	}
	return nil
}

// discard throws a connection away on which the end of a transaction has
// failed: the transaction may still be open there, and would swallow the next.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // which is what it returns
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// unknownError says that a COMMIT was not confirmed.
type unknownError struct{ cause error }

func (e *unknownError) Error() string {
	return "the database did not confirm the change: " + e.cause.Error()
}

func (e *unknownError) Unwrap() error { return e.cause }

func isUnknown(err error) bool {
	_, ok := errors.AsType[*unknownError](err)
	return ok
}

// completionUnknown is the one code of its class that leaves the outcome open.
const completionUnknown = "40003"

// commitError tells a COMMIT that PostgreSQL has refused, for a constraint or
// for another transaction's sake, from one whose outcome is unknown.
func commitError(err error) error {
	code := sqlState(err)
	if strings.HasPrefix(code, "23") || strings.HasPrefix(code, "40") && code != completionUnknown {
		return fmt.Errorf("the database refused to commit: %w", err)
	}
	return &unknownError{cause: err}
}

// repeatable says whether PostgreSQL has ended a transaction only because of
// another one: a serialization failure or a deadlock.
func repeatable(err error) bool {
	code := sqlState(err)
	return code == "40001" || code == "40P01"
}

// sqlState returns PostgreSQL's code for an error, whichever driver it is from.
func sqlState(err error) string {
	e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok {
		return ""
	}
	return e.SQLState()
}
