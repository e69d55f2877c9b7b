package account

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// sweepAfter is how long tokens are kept after they have ended.
	sweepAfter = 7 * 24 * time.Hour
	// sweepGroup is how many rows one transaction deletes: others wait for it.
	sweepGroup = 500
)

// SweepStore deletes what is long dead, at most limit rows a call, and says
// how many there were.
type SweepStore interface {
	// DeleteDeadCredentials deletes access tokens that ended before a time.
	DeleteDeadCredentials(ctx context.Context, before time.Time, limit int) (int, error)
	// DeleteDeadRefreshTokens deletes refresh tokens that ended before a time.
	DeleteDeadRefreshTokens(ctx context.Context, before time.Time, limit int) (int, error)
	// DeleteDeadSessions deletes sessions that began before a time and have no
	// tokens left.
	DeleteDeadSessions(ctx context.Context, before time.Time, limit int) (int, error)
}

// Sweeper deletes tokens that have ended long ago. Entries of the audit log
// stay, and so do keys.
type Sweeper struct {
	env

	store SweepStore
}

// Sweep deletes access and refresh tokens that ended more than 7 days ago, and
// the sessions that are left without any, in small groups so that others get
// their turn. It returns how many rows went, also when it was cut short.
func (s *Sweeper) Sweep(ctx context.Context) (int, error) {
	before := s.clock().Add(-sweepAfter)
	total := 0
	for _, remove := range []func(context.Context, time.Time, int) (int, error){
		s.store.DeleteDeadCredentials, s.store.DeleteDeadRefreshTokens, s.store.DeleteDeadSessions,
	} {
		for n := sweepGroup; n == sweepGroup; {
			if err := ctx.Err(); err != nil {
				return total, errors.Join(err, context.Cause(ctx))
			}
			var err error
			if n, err = remove(ctx, before, sweepGroup); err != nil {
				return total, fmt.Errorf("sweep: %w", err)
			}
			total += n
		}
	}
	return total, nil
}
