package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/privacystore"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

var _ credit.CustomerStore = (*Store)(nil)

// A customer with the balances, one row for each. In one statement, so that all
// are of one moment.
const customerText = `SELECT c.id, c.external_id, c.metadata, c.created_at, t.name, b.posted, b.held FROM customers c
LEFT JOIN balances b ON b.customer_id = c.id LEFT JOIN credit_types t ON t.id = b.credit_type_id `

const (
	findWholeCustomerText = customerText + `WHERE c.project_id = $1 AND c.external_id = $2`

	listCustomersText = customerText + `WHERE c.id IN (
  SELECT id FROM customers WHERE project_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3
) ORDER BY c.id DESC`

	setMetadataText = `UPDATE customers SET metadata = $3 WHERE project_id = $1 AND external_id = $2`
)

// FindCustomer implements credit.CustomerStore.
func (s *Store) FindCustomer(ctx context.Context, projectID, customer string) (credit.Customer, bool, error) {
	list, err := s.customers(ctx, findWholeCustomerText, projectID, customer)
	if err != nil || len(list) == 0 {
		return credit.Customer{}, false, err
	}
	return list[0], true, nil
}

// ListCustomers implements credit.CustomerStore.
func (s *Store) ListCustomers(ctx context.Context, projectID string, before int64, limit int) ([]credit.Customer, error) {
	return s.customers(ctx, listCustomersText, projectID, upper(before), limit)
}

// customers runs a query of customers with their balances.
func (s *Store) customers(ctx context.Context, text string, args ...any) ([]credit.Customer, error) {
	var list []credit.Customer
	err := s.each(ctx, text, args, func(scan func(...any) error) error {
		var c credit.Customer
		var metadata, creditType sql.NullString
		var posted, held sql.NullInt64
		var created int64
		err := scan(&c.Number, &c.ID, &metadata, &created, &creditType, &posted, &held)
		if err != nil {
			return err
		}
		if len(list) == 0 || list[len(list)-1].Number != c.Number {
			c.CreatedAt, c.Balances = time.UnixMicro(created).UTC(), map[string]credit.Balance{}
			if c.Metadata, err = metadataOf(metadata); err != nil {
				return err
			}
			list = append(list, c)
		}
		if creditType.Valid {
			list[len(list)-1].Balances[creditType.String] = credit.Balance{Posted: credit.Amount(posted.Int64), Held: credit.Amount(held.Int64)}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read customers: %w", err)
	}
	return list, nil
}

// EnsureCustomer implements credit.CustomerStore.
func (s *Store) EnsureCustomer(ctx context.Context, p credit.EnsureParams, now time.Time) (created bool, err error) {
	err = s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		if p.Metadata != nil {
			if err := privacystore.RefusePerson(ctx, b, p.ProjectID, privacy.Person{UserID: p.Customer}); err != nil {
				return err
			}
		}
		n, err := affected(b.Tx().ExecContext(ctx, createCustomerText, p.ProjectID, p.Customer, now.UnixMicro()))
		if err != nil {
			return fmt.Errorf("make a customer: %w", err)
		}
		created = n == 1
		if p.Metadata == nil {
			return nil
		}
		_, err = setMetadata(ctx, b.Tx(), p)
		return err
	})
	return created, err
}

// SetMetadata implements credit.CustomerStore.
func (s *Store) SetMetadata(ctx context.Context, p credit.EnsureParams) (found bool, err error) {
	err = s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		if err := privacystore.RefusePerson(ctx, b, p.ProjectID, privacy.Person{UserID: p.Customer}); err != nil {
			return err
		}
		found, err = setMetadata(ctx, b.Tx(), p)
		return err
	})
	return found, err
}

func setMetadata(ctx context.Context, tx *sql.Tx, p credit.EnsureParams) (found bool, err error) {
	metadata, err := metadataText(p.Metadata)
	if err != nil {
		return false, err
	}
	n, err := affected(tx.ExecContext(ctx, setMetadataText, p.ProjectID, p.Customer, metadata))
	if err != nil {
		return false, fmt.Errorf("change a customer: %w", err)
	}
	return n == 1, nil
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

const (
	declareTypeText = `INSERT INTO credit_types (project_id, name, allow_negative, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (project_id, name) DO NOTHING`

	typeText = `SELECT id, name, allow_negative, created_at FROM credit_types `

	getTypeText   = typeText + `WHERE project_id = $1 AND name = $2`
	listTypesText = typeText + `WHERE project_id = $1 AND id > $2 ORDER BY id LIMIT $3`
)

// EnsureType implements credit.CustomerStore.
func (s *Store) EnsureType(ctx context.Context, projectID string, t credit.Type) (now credit.Type, created bool, err error) {
	err = s.db.WriteTx(ctx, func(tx *sql.Tx) error {
		n, err := affected(tx.ExecContext(ctx, declareTypeText, projectID, t.Name, number(t.AllowNegative), t.CreatedAt.UnixMicro()))
		if err != nil {
			return fmt.Errorf("make a credit type: %w", err)
		}
		created = n == 1
		if now, err = scanType(tx.QueryRowContext(ctx, getTypeText, projectID, t.Name).Scan); err != nil {
			return fmt.Errorf("read a credit type: %w", err)
		}
		return nil
	})
	return now, created, err
}

// ListTypes implements credit.CustomerStore.
func (s *Store) ListTypes(ctx context.Context, projectID string, after int64, limit int) ([]credit.Type, error) {
	var list []credit.Type
	err := s.each(ctx, listTypesText, []any{projectID, after, limit}, func(scan func(...any) error) error {
		t, err := scanType(scan)
		list = append(list, t)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read credit types: %w", err)
	}
	return list, nil
}

func scanType(scan func(...any) error) (t credit.Type, err error) {
	var created int64
	err = scan(&t.Number, &t.Name, boolean(&t.AllowNegative), &created)
	t.CreatedAt = time.UnixMicro(created).UTC()
	return t, err
}

// each runs a query on the reading connections and calls row for each row.
func (s *Store) each(ctx context.Context, text string, args []any, row func(scan func(...any) error) error) (err error) {
	rows, err := s.db.Reader().QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
