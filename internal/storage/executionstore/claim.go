package executionstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Claim implements execution.Store.
func (s *Store) Claim(ctx context.Context, c execution.ClaimParams) ([]execution.Execution, error) {
	if idle, err := s.idle(ctx, c.Lease > 0); err != nil || idle {
		return nil, err
	}
	var claimed []execution.Execution
	err := s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		claimed = nil
		numbers, err := find(ctx, b, &c)
		if err != nil {
			return fmt.Errorf("find executions to run: %w", err)
		}
		var statements []sqldb.Statement
		for _, number := range numbers {
			statements = append(statements, sqldb.Statement{
				Text: claimText + until(c.Lease) + " WHERE number = $1", Args: []any{number, c.Owner[:], c.Now.UnixMicro()},
			}, sqldb.Statement{Text: numberedExecutionText, Args: []any{number}, Row: func(scan func(...any) error) error {
				x, err := scanExecution(scan)
				claimed = append(claimed, x)
				return err
			}})
		}
		if err := b.Run(ctx, statements); err != nil {
			return fmt.Errorf("claim executions: %w", err)
		}
		return nil
	})
	return claimed, err
}

// idle says that there is nothing to run, without writing anything.
func (s *Store) idle(ctx context.Context, leases bool) (bool, error) {
	texts := []string{anyQueuedText}
	if leases {
		texts = append(texts, `SELECT 1 FROM executions WHERE status = 'running' AND lease_until < `+databaseNow+` LIMIT 1`)
	}
	for _, text := range texts {
		found := false
		if err := s.each(ctx, text, nil, func(func(...any) error) error {
			found = true
			return nil
		}); err != nil {
			return false, fmt.Errorf("look for executions to run: %w", err)
		}
		if found {
			return false, nil
		}
	}
	return true, nil
}

// find locks executions that may be claimed: first those whose owner has gone.
func find(ctx context.Context, b *sqldb.Batch, c *execution.ClaimParams) ([]int64, error) {
	var numbers []int64
	look := func(text string, limit int) error {
		return b.Run(ctx, []sqldb.Statement{{Text: b.Claiming(text), Args: []any{limit}, Row: func(scan func(...any) error) error {
			var number int64
			err := scan(&number)
			numbers = append(numbers, number)
			return err
		}}})
	}
	if c.Lease > 0 {
		if err := look(expiredText, c.Limit); err != nil {
			return nil, err
		}
	}
	if left := c.Limit - len(numbers); left > 0 {
		if err := look(queuedText, left); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// Renew implements execution.Store.
func (s *Store) Renew(ctx context.Context, owner [16]byte, lease time.Duration) ([]execution.Held, error) {
	if lease > 0 {
		if err := s.exec(ctx, `UPDATE executions SET lease_until = `+until(lease)+` WHERE status = 'running' AND owner = $1`, owner[:]); err != nil {
			return nil, fmt.Errorf("renew leases: %w", err)
		}
	}
	var held []execution.Held
	err := s.each(ctx, heldText, []any{owner[:]}, func(scan func(...any) error) error {
		var one execution.Held
		var cancel sql.NullInt64
		err := scan(&one.Number, &one.Epoch, &cancel)
		one.CancelAsked = cancel.Valid
		held = append(held, one)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	return held, nil
}

// Void implements execution.Store.
func (s *Store) Void(ctx context.Context, owner [16]byte) error {
	return s.exec(ctx, voidText, owner[:])
}

// Release implements execution.Store.
func (s *Store) Release(ctx context.Context, number int64, lease execution.Lease) error {
	return s.exec(ctx, releaseText, number, lease.Owner[:], lease.Epoch)
}

// AskCancel implements execution.Store.
func (s *Store) AskCancel(ctx context.Context, number int64, at time.Time) error {
	return s.exec(ctx, askCancelText, number, at.UnixMicro())
}

func (s *Store) exec(ctx context.Context, text string, args ...any) error {
	return s.db.WriteTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text, args...)
		return err
	})
}
