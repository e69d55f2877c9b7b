package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"

	"github.com/jackc/pgx/v5"
)

// engine makes databases.
type engine struct {
	name string
	open func(ctx context.Context) (*database, error)
}

// database is what all forms work on: balances, entries, keys.
type database struct {
	dialect sqlstore.Dialect
	// write has one connection on SQLite; read has others.
	write, read *sql.DB
	keys        *sqlstore.Store
	books       *books
}

const schema = `
CREATE TABLE balances (account bigint PRIMARY KEY, amount bigint NOT NULL CHECK (amount >= 0));
CREATE TABLE entries (account bigint NOT NULL, amount bigint NOT NULL, work_key text NOT NULL);
CREATE INDEX entries_account ON entries (account);
CREATE TABLE textbook_keys (work_key text PRIMARY KEY, body text NOT NULL, answer text NOT NULL)`

// startEngines starts what there is to compare on.
func startEngines(dir string) (engines []engine, stop func(), err error) {
	server, end, err := pgtest.StartDurable()
	if err != nil {
		return nil, nil, err
	}
	var n atomic.Int64
	return []engine{
		{"SQLite", func(ctx context.Context) (*database, error) {
			return openSQLite(ctx, filepath.Join(dir, fmt.Sprintf("%d.db", n.Add(1))))
		}},
		{"PostgreSQL", func(ctx context.Context) (*database, error) {
			return openPostgreSQL(ctx, server, fmt.Sprintf("compare_%d_%d", os.Getpid(), n.Add(1)))
		}},
	}, func() { end() }, nil //nolint:errcheck // the run is over
}

func openSQLite(ctx context.Context, path string) (*database, error) {
	source := func(extra string) string {
		return "file:" + path + "?_busy_timeout=10000&_journal_mode=WAL&_synchronous=FULL" + extra
	}
	write, err := sql.Open("sqlite", source("&_txlock=immediate"))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", source(""))
	if err != nil {
		return nil, err
	}
	read.SetMaxOpenConns(4)
	return prepare(ctx, &database{dialect: sqlstore.SQLite, write: write, read: read}, sqldb.Options{Path: path + ".ledger"})
}

func openPostgreSQL(ctx context.Context, server, name string) (*database, error) {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	_, errBooks := conn.Exec(ctx, "CREATE DATABASE "+name+"_ledger")
	if err := errors.Join(err, errBooks, conn.Close(ctx)); err != nil {
		return nil, err
	}
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	u.Path = "/" + name + "_ledger"
	books := sqldb.Options{URL: u.String()}
	u.Path = "/" + name
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	return prepare(ctx, &database{dialect: sqlstore.PostgreSQL, write: db, read: db}, books)
}

func prepare(ctx context.Context, d *database, own sqldb.Options) (*database, error) {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	for statement := range strings.SplitSeq(schema, ";") {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
	}
	if err := errors.Join(sqlstore.Migrate(ctx, tx, d.dialect), tx.Commit()); err != nil {
		return nil, err
	}
	d.keys, err = sqlstore.New(sqlstore.Options{DB: d.read, Dialect: d.dialect, Write: d.inTx, Unknown: func(error) bool { return false }})
	if err != nil {
		return nil, err
	}
	d.books, err = openBooks(ctx, own)
	return d, err
}

func (d *database) close() {
	d.books.db.Close() //nolint:errcheck // the run is over
	d.write.Close()    //nolint:errcheck // the run is over
	if d.read != d.write {
		d.read.Close() //nolint:errcheck // the run is over
	}
}

// inTx runs fn in a transaction.
func (d *database) inTx(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := d.write.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// errInsufficient says that a balance does not cover a charge.
var errInsufficient = errors.New("insufficient")

// charge is the work: it takes an amount off a balance and notes it.
func charge(ctx context.Context, tx *sql.Tx, c command, key string) error {
	result, err := tx.ExecContext(ctx, `UPDATE balances SET amount = amount - $1 WHERE account = $2 AND amount >= $1`, c.Amount, c.Account)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errInsufficient)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO entries (account, amount, work_key) VALUES ($1, $2, $3)`, c.Account, c.Amount, key)
	return err
}

// fund gives accounts a balance, where a form keeps it.
func (f *form) fund(ctx context.Context, d *database, from, to, amount int64) error {
	if f.books {
		return d.books.fund(ctx, from, to, amount)
	}
	return d.fund(ctx, from, to, amount)
}

// entries counts what a form has done to an account.
func (f *form) entries(ctx context.Context, d *database, account int64) (int, error) {
	if f.books {
		return d.books.entries(ctx, account)
	}
	return d.entries(ctx, account)
}

// fund gives accounts a balance.
func (d *database) fund(ctx context.Context, from, to, amount int64) error {
	return d.inTx(ctx, func(tx *sql.Tx) error {
		for account := from; account < to; account++ {
			_, err := tx.ExecContext(ctx, `INSERT INTO balances (account, amount) VALUES ($1, $2)
ON CONFLICT (account) DO UPDATE SET amount = excluded.amount`, account, amount)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// entries counts what was done to an account.
func (d *database) entries(ctx context.Context, account int64) (n int, err error) {
	err = d.read.QueryRowContext(ctx, `SELECT COUNT(*) FROM entries WHERE account = $1`, account).Scan(&n)
	return n, err
}

// policy is that of credit movements.
var policy = idempotency.CreditMovement(0)
