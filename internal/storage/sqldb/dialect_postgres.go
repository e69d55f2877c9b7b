package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	keystore "github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

const (
	// postgresConnections limits the pool; PostgreSQL itself takes 100 by
	// default, for all its clients.
	postgresConnections = 16
	// postgresConnectTimeout applies when the URL names none.
	postgresConnectTimeout = 10 * time.Second
	// migrationLock is the key of the advisory lock held while migrating;
	// any number will do that other programs do not use.
	migrationLock = 7021395844164211

	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// postgresDialect is one database, one pool for reading and writing.
type postgresDialect struct{ config *pgx.ConnConfig }

func newPostgresDialect(url string) (dialect, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// pgx leaves the password out of this error.
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = postgresConnectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "actionpulse"
	}
	// What everything here is written for, whatever the database's default: at
	// a higher level, writers that queue for a row are refused, not served.
	config.RuntimeParams["default_transaction_isolation"] = "read committed"
	return postgresDialect{config: config}, nil
}

func (p postgresDialect) String() string {
	return fmt.Sprintf("database %s on %s", p.config.Database,
		net.JoinHostPort(p.config.Host, strconv.Itoa(int(p.config.Port))))
}

func (p postgresDialect) folder() string { return "postgres" }

// prepare does nothing: the operator has made the database.
func (p postgresDialect) prepare() error { return nil }

// present does nothing: connecting says whether the database is there.
func (p postgresDialect) present() error { return nil }

func (p postgresDialect) connect() (writer, reader *sql.DB, err error) {
	db := stdlib.OpenDB(*p.config)
	db.SetMaxOpenConns(postgresConnections)
	db.SetMaxIdleConns(postgresConnections)
	return db, db, nil
}

// check refuses a connection whose commits are answered before they are on
// disk, or whose text is not UTF-8.
func (p postgresDialect) check(ctx context.Context, writer *sql.DB) error {
	var commit, encoding string
	err := writer.QueryRowContext(ctx,
		`SELECT current_setting('synchronous_commit'), current_setting('server_encoding')`).Scan(&commit, &encoding)
	if err != nil {
		return fmt.Errorf("check the settings of %s: %w", p, err)
	}
	if commit == "off" {
		return fmt.Errorf("%s has synchronous_commit off: what was acknowledged could be lost", p)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%s stores text as %s; create it with encoding UTF8", p, encoding)
	}
	return nil
}

func (p postgresDialect) keys() keystore.Dialect { return keystore.PostgreSQL }

func (p postgresDialect) hasTable() string {
	return `SELECT COUNT(*) FROM pg_tables WHERE tablename = $1 AND schemaname = current_schema()`
}

func (p postgresDialect) lockMigrations() string {
	return fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", int64(migrationLock))
}

func (p postgresDialect) repeatable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == serializationFailure || e.Code == deadlockDetected)
}
