package executionstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Claim implements execution.Store.
func (s *Store) Claim(ctx context.Context, c execution.ClaimParams) ([]execution.Execution, error) {
	if idle, err := s.idle(ctx, &c); err != nil || idle {
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
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// idle says that there is nothing to run, without writing anything.
func (s *Store) idle(ctx context.Context, c *execution.ClaimParams) (bool, error) {
	looks := []sqldb.Statement{{Text: anyQueuedText}}
	if c.Lease > 0 {
		looks = append(looks, sqldb.Statement{Text: expiredText, Args: []any{c.Owner[:], 1}})
	}
	for _, one := range looks {
		found := false
		if err := s.each(ctx, one.Text, one.Args, func(func(...any) error) error {
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
	look := func(text string, args ...any) error {
		return b.Run(ctx, []sqldb.Statement{{Text: b.Claiming(text), Args: args, Row: func(scan func(...any) error) error {
			var number int64
			err := scan(&number)
			numbers = append(numbers, number)
			return err
		}}})
	}
	if c.Lease > 0 {
		if err := look(expiredText, c.Owner[:], c.Limit); err != nil {
			return nil, err
		}
	}
	if left := c.Limit - len(numbers); left > 0 {
		if err := look(queuedExcept(len(c.Except)), append([]any{left}, anys(c.Except)...)...); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// queuedExcept looks for what is queued of all projects but so many.
func queuedExcept(n int) string {
	if n == 0 {
		return queuedText + queuedOrder
	}
	var text strings.Builder
	text.WriteString(queuedText + " AND project_id NOT IN (")
	for i := range n {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString("$" + strconv.Itoa(i+2))
	}
	return text.String() + ")" + queuedOrder
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = one
	}
	return out
}

// Renew implements execution.Store. It locks in the order in which runs do when
// they write in groups, so that neither waits for the other for ever.
func (s *Store) Renew(ctx context.Context, owner [16]byte, lease time.Duration) ([]execution.Held, error) {
	var held []execution.Held
	add := func(scan func(...any) error) error {
		var one execution.Held
		var cancel sql.NullInt64
		err := scan(&one.Number, &one.Epoch, &cancel)
		one.CancelAsked = cancel.Valid
		held = append(held, one)
		return err
	}
	if lease == 0 {
		if err := s.each(ctx, heldText, []any{owner[:]}, add); err != nil {
			return nil, fmt.Errorf("read what is held: %w", err)
		}
		return held, nil
	}
	err := s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		held = nil
		return b.Run(ctx, []sqldb.Statement{
			{Text: b.Locking(heldText), Args: []any{owner[:]}, Row: add},
			{Text: `UPDATE executions SET lease_until = ` + until(lease) + ` WHERE status = 'running' AND owner = $1`, Args: []any{owner[:]}},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
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

// Forget implements execution.Store.
func (s *Store) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	changed := int64(0)
	err := s.db.WriteTx(ctx, func(tx *sql.Tx) error {
		changed = 0
		for _, text := range []string{forgetStepsText, forgetCallsText} {
			done, err := tx.ExecContext(ctx, text, before.UnixMicro(), limit)
			if err != nil {
				return err
			}
			n, err := done.RowsAffected()
			if err != nil {
				return err
			}
			changed += n
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("forget what was said in executions: %w", err)
	}
	return int(changed), nil
}

func (s *Store) exec(ctx context.Context, text string, args ...any) error {
	return s.db.WriteTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text, args...)
		return err
	})
}
