package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// DeleteDeadCredentials implements account.SweepStore.
func (s *Store) DeleteDeadCredentials(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.sweep(ctx, func(q *sqldb.Queries) (int64, error) {
		return q.DeleteDeadCredentials(ctx, sqldb.DeleteDeadCredentialsParams{
			ExpiresAt: sql.NullInt64{Int64: before.UnixMicro(), Valid: true}, Limit: sizeOf(limit),
		})
	})
}

// DeleteDeadRefreshTokens implements account.SweepStore.
func (s *Store) DeleteDeadRefreshTokens(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.sweep(ctx, func(q *sqldb.Queries) (int64, error) {
		return q.DeleteDeadRefreshTokens(ctx, sqldb.DeleteDeadRefreshTokensParams{
			ExpiresAt: before.UnixMicro(), Limit: sizeOf(limit),
		})
	})
}

// DeleteDeadSessions implements account.SweepStore.
func (s *Store) DeleteDeadSessions(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.sweep(ctx, func(q *sqldb.Queries) (int64, error) {
		return q.DeleteDeadSessions(ctx, sqldb.DeleteDeadSessionsParams{
			CreatedAt: before.UnixMicro(), Limit: sizeOf(limit),
		})
	})
}

// sweep runs one deletion in a transaction of its own.
func (s *Store) sweep(ctx context.Context, remove func(*sqldb.Queries) (int64, error)) (int, error) {
	var n int64
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		if n, err = remove(q); err != nil {
			return fmt.Errorf("delete what is long dead: %w", err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int(n), nil
}
