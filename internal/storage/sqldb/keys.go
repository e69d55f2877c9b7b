package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	keystore "github.com/actionpulse/actionpulse/idempotency/sqlstore"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Keys returns the store of idempotency keys. It lives in the same database,
// so that a claim can be the first row of the transaction that does the work,
// and it writes through WriteTx like everyone else.
func (d *DB) Keys() *keystore.Store { return d.keys }

// openKeys makes the store of keys. A clock replaces the engine's own.
func (d *DB) openKeys(clock func() time.Time) (err error) {
	d.keys, err = keystore.New(keystore.Options{
		DB: d.reader, Dialect: d.dialect.keys(), Write: d.WriteTx, Unknown: fault.MayBeApplied, Clock: clock,
	})
	return err
}

// migrateKeys brings the table of keys up to date.
func (d *DB) migrateKeys(ctx context.Context) error {
	err := inTx(ctx, d.writer, func(tx *sql.Tx) error { return keystore.Migrate(ctx, tx, d.dialect.keys()) })
	if errors.Is(err, keystore.ErrNewer) {
		return fmt.Errorf("%w: %w", ErrNewer, err)
	}
	if err != nil {
		return fmt.Errorf("migrate %s: %w", d.dialect, err)
	}
	return nil
}
