package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// The defaults of a sweep.
const (
	// SweepGrace is how long after its end something is removed. It spares
	// those who read by a clock that is a little behind.
	SweepGrace = time.Hour
	// SweepGroup is how many rows one transaction changes.
	SweepGroup = 500
)

// Sweep drops the bodies of answers that have expired and the keys that are
// forgotten, in groups of SweepGroup rows, each a transaction, and returns how
// many rows it changed. It may run at any time and as often as one likes: what
// a repeat hears does not depend on it.
func (s *Store) Sweep(ctx context.Context) (changed int64, err error) {
	for _, text := range []string{s.sql.strip, s.sql.forget} {
		for {
			var n int64
			err := s.options.Write(ctx, func(tx *sql.Tx) (err error) {
				n, err = exec(ctx, tx, text, s.now(), SweepGrace.Microseconds(), SweepGroup)
				return err
			})
			if err != nil {
				return changed, fmt.Errorf("sweep the idempotency keys: %w", err)
			}
			changed += n
			if n < SweepGroup {
				break
			}
		}
	}
	return changed, nil
}
