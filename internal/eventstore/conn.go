package eventstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
)

// transaction runs fn between BEGIN and COMMIT and rolls back if it fails. The
// commit is not cancelled: a client that left must not make its outcome
// unknown. An error of BEGIN or COMMIT is ErrUnwritable: what fn wrote had been
// accepted.
func transaction(ctx context.Context, conn *duck.Conn, fn func() error) error {
	calm := context.WithoutCancel(ctx)
	if _, err := conn.Exec(calm, "BEGIN TRANSACTION"); err != nil {
		return errors.Join(ErrUnwritable, err)
	}
	if err := fn(); err != nil {
		return errors.Join(err, rollback(calm, conn))
	}
	if _, err := conn.Exec(calm, "COMMIT"); err != nil {
		return errors.Join(ErrUnwritable, fmt.Errorf("commit: %w", err), rollback(calm, conn))
	}
	return nil
}

// rollback ends the transaction if there still is one: DuckDB has already
// ended it when a commit failed.
func rollback(ctx context.Context, conn *duck.Conn) error {
	_, err := conn.Exec(ctx, "ROLLBACK")
	if err != nil && !duck.NoTransaction(err) {
		return fmt.Errorf("rollback: %w", err)
	}
	return nil
}

// scalar returns the BIGINT that a query's first row begins with.
func scalar(ctx context.Context, conn *duck.Conn, query string, args ...any) (int64, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	var value int64
	found := rows.Next()
	if found {
		value = rows.Int64(0)
	}
	if err := rows.Close(); err != nil {
		return 0, err
	}
	if !found {
		return 0, errors.New("no row")
	}
	return value, nil
}

// uuidText returns the hyphenated lower-case form of a UUID.
func uuidText(id [16]byte) string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}
