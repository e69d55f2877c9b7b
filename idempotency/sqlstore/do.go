package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/idempotency"
)

// Work does a unit of work in a transaction. An error, or an answer that does
// not take the key under the request's policy, undoes everything it has done. It
// must leave beginning and ending tx to its caller, and must not go on after
// the database has refused a statement.
type Work func(tx *sql.Tx) (idempotency.Answer, error)

// Do does a unit of work once. The claim on the key is the first row written
// within tx, then the work is done, then the answer is stored; committing is
// left to the caller, and nothing may be said to anyone before COMMIT has
// returned. A second request with the same key waits for the first one's
// transaction and is then answered.
//
// If Do returns an error, or an answer that leaves the key free, everything it
// did is undone by a savepoint: tx can be committed or rolled back, and the
// key is free. The errors are those of work, an [*idempotency.Error]
// (Mismatch, StillRunning), [ErrRef], and those of the database.
//
// The context must live as long as tx: one that ends in the midst of a
// statement can end the transaction, and then COMMIT fails. A transaction that
// does several units of work should take their keys in order of scope,
// namespace and key, or two of them can deadlock.
func (s *Store) Do(ctx context.Context, tx *sql.Tx, r idempotency.Request, work Work) (result idempotency.Result, err error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT idempotency"); err != nil {
		return idempotency.Result{}, fmt.Errorf("begin a unit of work: %w", err)
	}
	keep := false
	defer func() {
		if keep {
			return
		}
		// Also when work has panicked: whoever recovers may commit tx.
		err = errors.Join(err, undo(context.WithoutCancel(ctx), tx))
	}()
	claim, err := s.claim(ctx, tx, claimant{request: &r, token: newToken()})
	if err != nil {
		return idempotency.Result{}, err
	}
	if claim.Judgement.Verdict != idempotency.Fresh {
		return claim.Judgement.Resolve(&r, claim.Record)
	}
	s.step("claimed")
	answer, err := work(tx)
	if err != nil {
		return idempotency.Result{}, err
	}
	result = idempotency.Result{Answer: &answer, Record: idempotency.Record{
		Ref: r.Ref(), Owner: claim.Owner, Resource: answer.Resource,
	}}
	if !takes(r.Policy, &answer) {
		return result, nil
	}
	s.step("worked")
	n, err := s.complete(ctx, tx, &r, claim.Owner, &answer)
	if err != nil {
		return idempotency.Result{}, err
	}
	if n != 1 {
		return idempotency.Result{}, idempotency.ErrLeaseLost
	}
	s.step("completed")
	if _, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT idempotency"); err != nil {
		return idempotency.Result{}, fmt.Errorf("end a unit of work: %w", err)
	}
	keep = true
	return result, nil
}

// undo goes back to before the claim. A transaction that has ended is undone
// already.
func undo(ctx context.Context, tx *sql.Tx) error {
	for _, text := range []string{"ROLLBACK TO SAVEPOINT idempotency", "RELEASE SAVEPOINT idempotency"} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return ignore(err, sql.ErrTxDone)
		}
	}
	return nil
}

// takes says whether an answer takes the key.
func takes(p *idempotency.Policy, a *idempotency.Answer) bool {
	switch p.Takes {
	case idempotency.OnAnswer:
		return true
	case idempotency.OnResource:
		return a.Resource != idempotency.Resource{}
	default:
		return a.Status < 400
	}
}
