// Package sqlstore keeps accounts and credentials in the transactional store:
// it turns domain types into rows and back. It decides nothing that the domain
// packages or the schema's constraints decide.
package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/retention"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Store implements the store interfaces of account, auditlog and credential.
type Store struct {
	db *sqldb.DB
}

var (
	_ account.Store         = (*Store)(nil)
	_ account.ServicesStore = (*Store)(nil)
	_ auditlog.Store        = (*Store)(nil)
	_ credential.Store      = (*Store)(nil)
	_ retention.Store       = (*Store)(nil)
)

// New returns a Store that reads and writes db, which stays the caller's to
// close.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// sizeOf is a page's size as queries take it.
func sizeOf(limit int) int32 { return int32(min(max(limit, 0), math.MaxInt32)) }

// optional turns the answer of a query for one row into the row and whether
// there was one.
func optional[T any](row T, err error, what string) (T, bool, error) {
	var none T
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return none, false, nil
	case err != nil:
		return none, false, fmt.Errorf("%s: %w", what, err)
	default:
		return row, true, nil
	}
}
