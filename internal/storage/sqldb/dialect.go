package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	keystore "github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// dialect is what differs between the engines. String names the store for
// messages, without secrets.
type dialect interface {
	fmt.Stringer
	connector
	migrator
	messenger
	snapshotter

	// scrub leaves nothing in the store's own files of what was overwritten or
	// deleted, as far as it can see to that.
	scrub(ctx context.Context, writer *sql.DB) error
	// keys is how the store of idempotency keys calls the engine.
	keys() keystore.Dialect
	// repeatable says whether a transaction failed only because of others
	// running at the same time, was rolled back whole and may be run again.
	repeatable(err error) bool
}

// connector is how a store is found and opened.
type connector interface {
	// prepare makes what must exist before a store can be created.
	prepare() error
	// present returns ErrMissing when there is nothing to connect to.
	present() error
	// connect returns the pools for writing and reading, which may be one. It
	// opens no connection yet.
	connect() (writer, reader *sql.DB, err error)
	// check verifies that connections have the settings durability needs.
	check(ctx context.Context, writer *sql.DB) error
}

// migrator is what migrating needs to know of an engine.
type migrator interface {
	// folder names the engine's migrations.
	folder() string
	// batch runs statements in order in the batch's transaction.
	batch(ctx context.Context, b *Batch, statements []Statement) error
	// forUpdate ends a SELECT that locks the rows it finds.
	forUpdate() string
	// forShare ends a SELECT that others may make too, but that keeps the rows
	// as they are.
	forShare() string
	// forUpdateSkipping is the same for a SELECT that leaves out what others
	// have locked.
	forUpdateSkipping() string
	// rowsAtOnce is how many rows a statement about many is about at most.
	rowsAtOnce() int
	// hasTable is a query with one parameter, a table's name, that counts 0
	// or 1.
	hasTable() string
	// lockMigrations is a statement, run first in each migration's
	// transaction, after which no other process migrates; empty when the
	// transaction alone sees to that.
	lockMigrations() string
}

// messenger is how processes that share a store tell one another that
// something was changed.
type messenger interface {
	// announce is a statement with one parameter, a channel's name, that tells
	// those who listen there that something was changed; empty when there can
	// be no others.
	announce() string
	// now is a query for the time by the engine's own clock, in microseconds;
	// empty when that is this machine's.
	now() string
	// listen calls changed when it begins to listen and for each announcement,
	// until the context ends or the connection is lost.
	listen(ctx context.Context, changed func()) error
}

// snapshotter is how a store is copied while it is in use.
type snapshotter interface {
	// observer returns one connection for a snapshot.
	observer() (*sql.DB, error)
	// snapshot fixes what the connection sees, and returns the name under
	// which others can see the same, if there is one.
	snapshot(ctx context.Context, conn *sql.Conn) (name string, err error)
	// copySnapshot writes what the snapshot sees into a file.
	copySnapshot(ctx context.Context, from *Snapshot, p CopyParams) error
}

func dialectOf(o Options) (dialect, error) {
	switch {
	case o.Path != "" && o.URL != "":
		return nil, errors.New("the store has both a path and a URL")
	case o.Path != "":
		return sqliteDialect{path: o.Path}, nil
	case o.URL != "":
		return newPostgresDialect(o.URL)
	default:
		return nil, errors.New("the store has neither a path nor a URL")
	}
}
