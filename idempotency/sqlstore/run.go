package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/idempotency"
)

// runAttempts bounds how often a unit of work is begun whose COMMIT was not
// confirmed.
const runAttempts = 3

// Run is [Store.Do] in a transaction of its own, committed when it returns.
// work may run several times, each time after a rollback.
//
// If it is unknown whether the transaction was committed, Run asks again with
// the same key: the claim waits for the end of that transaction, and then
// either finds what it has committed, or does the work anew. What it found to
// be its own work is not a replay. If that fails, too, the error is one for
// which Options.Unknown holds, and the same request may be sent again at any
// time.
func (s *Store) Run(ctx context.Context, r idempotency.Request, work Work) (idempotency.Result, error) {
	tokens := map[[16]byte]idempotency.Result{}
	for attempt := 1; ; attempt++ {
		var result idempotency.Result
		err := s.options.Write(ctx, func(tx *sql.Tx) (err error) {
			result, err = s.Do(ctx, tx, r, work)
			if err == nil && !result.Replayed {
				tokens[result.Record.Owner.Token] = result
			}
			return err
		})
		if err == nil {
			if mine, ok := tokens[result.Record.Owner.Token]; ok && result.Replayed {
				return mine, nil
			}
			return result, nil
		}
		if !s.options.Unknown(err) || attempt == runAttempts || ctx.Err() != nil {
			return idempotency.Result{}, err
		}
	}
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

// writer returns the default for Options.Write.
func writer(db *sql.DB) func(context.Context, func(*sql.Tx) error) error {
	return func(ctx context.Context, fn func(*sql.Tx) error) (err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("begin a transaction: %w", err)
		}
		done := false
		defer func() {
			if !done {
				err = errors.Join(err, ignoreDone(tx.Rollback()))
			}
		}()
		if err := fn(tx); err != nil {
			return err
		}
		done = true
		if err := tx.Commit(); err != nil {
			return &unknownError{cause: err}
		}
		return nil
	}
}

// ignoreDone drops the error that says that the context has ended the
// transaction already.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}
