package sqlstore

import (
	"context"
	"database/sql"
	"errors"

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
	one := run{Store: s, request: r, work: work, mine: map[[16]byte]idempotency.Result{}}
	for attempt := 1; ; attempt++ {
		result, err := one.attempt(ctx)
		if err == nil {
			return result, nil
		}
		if one.unknown == nil || attempt == runAttempts || ctx.Err() != nil {
			return idempotency.Result{}, one.explain(err)
		}
	}
}

// run is one call of Run.
type run struct {
	*Store

	request idempotency.Request
	work    Work
	// mine holds what has been done and may have been committed, by token.
	mine map[[16]byte]idempotency.Result
	// unknown is the error of a COMMIT of which nobody knows whether it landed.
	unknown error
}

// attempt does the work in one transaction, or finds that it was done.
func (o *run) attempt(ctx context.Context) (result idempotency.Result, err error) {
	err = o.options.Write(ctx, func(tx *sql.Tx) (err error) {
		result, err = o.Do(ctx, tx, o.request, func(tx *sql.Tx) (idempotency.Answer, error) {
			o.unknown = nil // the claim was free: what came before has not landed
			return o.work(tx)
		})
		if err == nil && !result.Replayed {
			o.mine[result.Record.Owner.Token] = result
		}
		return err
	})
	if err != nil {
		switch _, judged := errors.AsType[*idempotency.Error](err); {
		case judged: // the key names another's work, or another works on it
			o.unknown = nil
		case o.options.Unknown(err):
			o.unknown = err
		}
		return idempotency.Result{}, err
	}
	if first, ok := o.mine[result.Record.Owner.Token]; ok {
		return first, nil
	}
	return result, nil
}

// explain returns the error of the last attempt, and with it that of a COMMIT
// whose outcome it has left open.
func (o *run) explain(err error) error {
	if o.unknown == nil || o.options.Unknown(err) {
		return err
	}
	if joined := errors.Join(o.unknown, err); o.options.Unknown(joined) {
		return joined
	}
	return o.unknown
}
