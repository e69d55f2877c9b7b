package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

var _ credit.BookStore = (*Store)(nil)

// upper is the number below which everything is asked for.
func upper(before int64) int64 {
	if before == 0 {
		return math.MaxInt64
	}
	return before
}

// conditions is the WHERE of a query that is put together.
type conditions struct {
	text []string
	args []any
}

// add adds a condition; ? stands for the argument.
func (c *conditions) add(text string, arg any) {
	c.args = append(c.args, arg)
	c.text = append(c.text, strings.ReplaceAll(text, "?", "$"+strconv.Itoa(len(c.args))))
}

// where ends with the argument of LIMIT.
func (c *conditions) where(order string, limit int) string {
	c.args = append(c.args, limit)
	return " WHERE " + strings.Join(c.text, " AND ") + " ORDER BY " + order + " LIMIT $" + strconv.Itoa(len(c.args))
}

// ListMovements implements credit.BookStore.
func (s *Store) ListMovements(ctx context.Context, q credit.MovementQuery) ([]credit.Movement, error) {
	var c conditions
	// A customer is of one project: only one of the two, so that there is no
	// choice of the index.
	if q.Customer == "" {
		c.add("m.project_id = ?", q.ProjectID)
	} else {
		customer, found, err := s.customerNumber(ctx, q.ProjectID, q.Customer)
		if err != nil || !found {
			return nil, err
		}
		c.add("m.customer_id = ?", customer)
	}
	if q.CreditType != "" {
		c.add("t.name = ?", q.CreditType)
	}
	if q.Kind != "" {
		c.add("m.kind = ?", string(q.Kind))
	}
	if !q.From.IsZero() {
		c.add("m.created_at >= ?", ceilMicro(q.From))
	}
	if !q.To.IsZero() {
		c.add("m.created_at < ?", ceilMicro(q.To))
	}
	order := "m.number"
	if q.UpTo > 0 {
		c.add("m.number > ?", q.After)
		c.add("m.number <= ?", q.UpTo)
	} else {
		c.add("m.number < ?", upper(q.Before))
		order = "m.number DESC"
	}
	text := `SELECT ` + movementColumns + movementTables + c.where(order, q.Limit)
	return s.movements(ctx, text, c.args)
}

// ceilMicro is the first microsecond that is not before t.
func ceilMicro(t time.Time) int64 {
	at := t.UnixMicro()
	if time.UnixMicro(at).Before(t) {
		at++
	}
	return at
}

func (s *Store) movements(ctx context.Context, text string, args []any) ([]credit.Movement, error) {
	var list []credit.Movement
	err := s.each(ctx, text, args, func(scan func(...any) error) error {
		m, err := scanMovement(scan)
		list = append(list, m)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read movements: %w", err)
	}
	return list, nil
}

func (s *Store) customerNumber(ctx context.Context, projectID, customer string) (number int64, found bool, err error) {
	err = s.db.Reader().QueryRowContext(ctx, findCustomerText, projectID, customer).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("find a customer: %w", err)
	}
	return number, true, nil
}

// LastMovement implements credit.BookStore.
func (s *Store) LastMovement(ctx context.Context, projectID string) (number int64, err error) {
	const text = `SELECT COALESCE(MAX(number), 0) FROM movements WHERE project_id = $1`
	if err := s.db.Reader().QueryRowContext(ctx, text, projectID).Scan(&number); err != nil {
		return 0, fmt.Errorf("find the last movement: %w", err)
	}
	return number, nil
}

// FindReversal implements credit.BookStore.
func (s *Store) FindReversal(ctx context.Context, movementID string) (credit.Movement, bool, error) {
	list, err := s.movements(ctx, findReversalText, []any{movementID})
	if err != nil || len(list) == 0 {
		return credit.Movement{}, false, err
	}
	return list[0], true, nil
}

const (
	wholeHoldText = `SELECT c.external_id, t.name, ` + holdColumns + ` FROM holds h
JOIN customers c ON c.id = h.customer_id JOIN credit_types t ON t.id = h.credit_type_id`

	getHoldText = wholeHoldText + ` WHERE c.project_id = $1 AND c.external_id = $2 AND h.hold_id = $3`
)

// FindHold implements credit.BookStore.
func (s *Store) FindHold(ctx context.Context, projectID, customer, holdID string) (credit.StoredHold, bool, error) {
	list, err := s.holds(ctx, getHoldText, []any{projectID, customer, holdID})
	if err != nil || len(list) == 0 {
		return credit.StoredHold{}, false, err
	}
	return list[0], true, nil
}

// ListHolds implements credit.BookStore.
func (s *Store) ListHolds(ctx context.Context, q credit.HoldQuery) ([]credit.StoredHold, error) {
	var c conditions
	c.add("h.customer_id = ?", q.Customer)
	c.add("h.id < ?", upper(q.Before))
	if q.State != "" {
		c.add("h.state = ?", string(q.State))
	}
	text := wholeHoldText + c.where("h.id DESC", q.Limit)
	return s.holds(ctx, text, c.args)
}

func (s *Store) holds(ctx context.Context, text string, args []any) ([]credit.StoredHold, error) {
	var list []credit.StoredHold
	err := s.each(ctx, text, args, func(scan func(...any) error) error {
		one := newAccount(place{})
		err := one.scanHold(func(dest ...any) error {
			return scan(append([]any{&one.customer, &one.typeName}, dest...)...)
		})
		if err != nil {
			return err
		}
		for _, h := range one.holds {
			h.Customer, h.CreditType = one.customer, one.typeName
			list = append(list, *h)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read holds: %w", err)
	}
	return list, nil
}

const listGrantsText = `SELECT g.id, g.movement_id, t.name, g.priority, g.expires_at, g.created_at, g.amount, g.remaining, g.pinned
FROM grants g JOIN credit_types t ON t.id = g.credit_type_id
WHERE g.customer_id = $1 AND g.remaining > 0 AND g.id > $2 ORDER BY g.id LIMIT $3`

// ListGrants implements credit.BookStore.
func (s *Store) ListGrants(ctx context.Context, customer, after int64, limit int) ([]credit.StoredGrant, error) {
	var list []credit.StoredGrant
	err := s.each(ctx, listGrantsText, []any{customer, after, limit}, func(scan func(...any) error) error {
		var g credit.StoredGrant
		var expires sql.NullInt64
		var created int64
		err := scan(&g.Number, &g.Movement, &g.CreditType, &g.Priority, &expires, &created, &g.Granted, &g.Remaining, &g.Pinned)
		g.ExpiresAt, g.CreatedAt = sqldb.TimeOf(expires), time.UnixMicro(created).UTC()
		list = append(list, g)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read grants: %w", err)
	}
	return list, nil
}

// Of each balance what the last movement left, and what the holds of then held.
const balancesAtText = `SELECT t.name, COALESCE((
  SELECT m.balance_after FROM movements m
  WHERE m.customer_id = b.customer_id AND m.credit_type_id = b.credit_type_id AND m.created_at <= $2
  ORDER BY m.number DESC LIMIT 1
), 0), COALESCE((
  SELECT CAST(SUM(h.amount) AS bigint) FROM holds h
  WHERE h.customer_id = b.customer_id AND h.credit_type_id = b.credit_type_id
  AND h.created_at <= $2 AND (h.closed_at IS NULL OR h.closed_at > $2)
), 0) FROM balances b JOIN credit_types t ON t.id = b.credit_type_id WHERE b.customer_id = $1`

// BalancesAt implements credit.BookStore.
func (s *Store) BalancesAt(ctx context.Context, customer int64, at time.Time) (map[string]credit.Balance, error) {
	balances := map[string]credit.Balance{}
	err := s.each(ctx, balancesAtText, []any{customer, at.UnixMicro()}, func(scan func(...any) error) error {
		var name string
		var b credit.Balance
		err := scan(&name, &b.Posted, &b.Held)
		balances[name] = b
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read past balances: %w", err)
	}
	return balances, nil
}

const listDueText = `SELECT c.project_id, c.external_id, t.name FROM balances b
JOIN customers c ON c.id = b.customer_id JOIN credit_types t ON t.id = b.credit_type_id
WHERE b.next_due <= $1 ORDER BY b.next_due LIMIT $2`

// ListDue implements credit.DueStore.
func (s *Store) ListDue(ctx context.Context, now time.Time, limit int) ([]credit.Due, error) {
	var list []credit.Due
	err := s.each(ctx, listDueText, []any{now.UnixMicro(), limit}, func(scan func(...any) error) error {
		var d credit.Due
		err := scan(&d.ProjectID, &d.Customer, &d.CreditType)
		list = append(list, d)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read which balances are due: %w", err)
	}
	return list, nil
}
