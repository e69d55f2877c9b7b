package idempotency_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

var errInsufficient = errors.New("insufficient funds")

// charge takes money from a balance: it is the work, and knows nothing of keys.
func charge(ctx context.Context, tx *sql.Tx, customer string, amount int) (left int, err error) {
	err = tx.QueryRowContext(ctx,
		`UPDATE balance SET amount = amount - $2 WHERE customer = $1 AND amount >= $2 RETURNING amount`,
		customer, amount).Scan(&left)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errInsufficient
	}
	return left, err
}

// say prints what a caller would be told.
func say(result idempotency.Result, err error) {
	refused, ok := errors.AsType[*idempotency.Error](err)
	switch {
	case ok:
		fmt.Println(refused.Refusal.Status, refused.Refusal.Code, refused.Differs)
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Printf("%s, replayed: %t\n", result.Answer.Body, result.Replayed)
	}
}

// The atomic form within a transaction of the caller: the claim, the work and
// the answer commit together, with whatever else the transaction does.
func Example_atomic() {
	ctx := context.Background()
	db, keys, done := openDatabase(ctx)
	defer done()
	policy := idempotency.CreditMovement(0)

	handle := func(key, customer string, amount int) (idempotency.Result, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return idempotency.Result{}, err
		}
		defer tx.Rollback() //nolint:errcheck // after COMMIT there is nothing to undo
		request := idempotency.Request{
			Policy: &policy, Scope: "project-1", Key: key,
			Facts: []idempotency.Fact{{Name: "method", Value: "charge"}, {Name: "customer", Value: customer}},
			Body:  fmt.Appendf(nil, `{"amount": %d}`, amount),
		}
		result, err := keys.Do(ctx, tx, request, func(tx *sql.Tx) (idempotency.Answer, error) {
			left, err := charge(ctx, tx, customer, amount)
			return idempotency.Answer{Status: 200, Body: fmt.Appendf(nil, "left %d", left)}, err
		})
		if err != nil {
			return result, err // the key is as free as it was
		}
		return result, tx.Commit() // only now may anything be said
	}

	say(handle("order-42", "ada", 100))
	say(handle("order-42", "ada", 100)) // not "insufficient": it has been done
	say(handle("order-42", "ada", 50))
	say(handle("order-43", "ada", 1))
	// Output:
	// left 0, replayed: false
	// left 0, replayed: true
	// 409 idempotency_conflict [body]
	// insufficient funds
}

// The atomic form in a transaction of its own. A refusal leaves the key free.
func Example_run() {
	ctx := context.Background()
	db, keys, done := openDatabase(ctx)
	defer done()
	policy := idempotency.CreditMovement(0)

	run := func(amount int) (idempotency.Result, error) {
		return keys.Run(ctx, idempotency.Request{
			Policy: &policy, Scope: "project-1", Key: "order-42",
			Facts: []idempotency.Fact{{Name: "customer", Value: "ada"}},
			Body:  fmt.Appendf(nil, `{"amount": %d}`, amount),
		}, sqlstore.Work(func(tx *sql.Tx) (idempotency.Answer, error) {
			left, err := charge(ctx, tx, "ada", amount)
			return idempotency.Answer{Status: 200, Body: fmt.Appendf(nil, "left %d", left)}, err
		}))
	}

	say(run(1000))
	if _, err := db.ExecContext(ctx, `UPDATE balance SET amount = 5000 WHERE customer = 'ada'`); err != nil {
		log.Print(err)
		return
	}
	say(run(1000))
	say(run(1000))
	// Output:
	// insufficient funds
	// left 4000, replayed: false
	// left 4000, replayed: true
}
