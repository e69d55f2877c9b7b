// Package sqlstore keeps accounts and credentials in the transactional store:
// it turns domain types into rows and back. It decides nothing that the domain
// packages or the schema's constraints decide.
package sqlstore

import (
	"database/sql"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Store implements the store interfaces of account and credential.
type Store struct {
	db *sqldb.DB
}

var (
	_ account.Store    = (*Store)(nil)
	_ credential.Store = (*Store)(nil)
)

// New returns a Store that reads and writes db, which stays the caller's to
// close.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

func nullString(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

func nullTime(t time.Time) sql.NullInt64 {
	if t.IsZero() {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: true}
}

func timeOf(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}
