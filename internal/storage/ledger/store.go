// Package ledger keeps customers, credits and movements in the transactional
// store: it reads what a group of ops needs, lets package credit decide, and
// writes the outcome, all in one transaction. It decides nothing about credits.
//
// Invariants:
//   - the claim on a key is the first thing that is done for an op, and leaves
//     no row if the op is refused;
//   - everything of a balance is read and written by who has locked its row;
//   - every group locks in the same order, so that no two wait for each other.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/recent"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Store implements credit.Store.
type Store struct {
	db      *sqldb.DB
	noticed func()
	// known is where balances are.
	known *recent.Map[name, found]
}

var _ credit.Store = (*Store)(nil)

// New returns a Store that reads and writes db, which stays the caller's to
// close.
func New(db *sqldb.DB) *Store { return &Store{db: db, known: recent.New[name, found](maxPlaces)} }

// OnMessages has noticed called after each group that has left messages for
// webhooks. It must be called before the store is used, and noticed must not
// wait.
func (s *Store) OnMessages(noticed func()) { s.noticed = noticed }

// Judge implements credit.Store.
func (s *Store) Judge(ctx context.Context, r idempotency.Request) (idempotency.Result, bool, error) {
	return s.db.Keys().Judge(ctx, r)
}

// FindMovement implements credit.Store.
func (s *Store) FindMovement(ctx context.Context, projectID, movementID string) (credit.Movement, bool, error) {
	m, err := scanMovement(s.db.Reader().QueryRowContext(ctx, findMovementText, projectID, movementID).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return credit.Movement{}, false, nil
	}
	if err != nil {
		return credit.Movement{}, false, fmt.Errorf("read a movement: %w", err)
	}
	return m, true, nil
}

const findBalanceText = `SELECT COALESCE(b.posted, 0), COALESCE(b.held, 0) FROM customers c
LEFT JOIN credit_types t ON t.project_id = c.project_id AND t.name = $3
LEFT JOIN balances b ON b.customer_id = c.id AND b.credit_type_id = t.id
WHERE c.project_id = $1 AND c.external_id = $2`

// FindBalance implements credit.Store.
func (s *Store) FindBalance(ctx context.Context, projectID, customer, creditType string) (credit.Balance, bool, error) {
	var b credit.Balance
	err := s.db.Reader().QueryRowContext(ctx, findBalanceText, projectID, customer, creditType).Scan(&b.Posted, &b.Held)
	if errors.Is(err, sql.ErrNoRows) {
		return credit.Balance{}, false, nil
	}
	if err != nil {
		return credit.Balance{}, false, fmt.Errorf("read a balance: %w", err)
	}
	return b, true, nil
}
