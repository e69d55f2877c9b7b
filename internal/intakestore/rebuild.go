package intakestore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

// rebuildBatch is how many claims are written together during a rebuild.
const rebuildBatch = 100_000

// Rebuild replaces all claims by those that each yields, oldest first, and the
// state by another one. Records stay as they are. It must have the store to
// itself. A rebuild that is cut short leaves a mark, with which the store
// refuses to open until the rebuild has been done again. It returns how many
// claims were written.
func (s *Store) Rebuild(state State, each func(yield func(record.Identity, dedup.Claim) error) error) (int, error) {
	s.background.Wait()
	if err := s.clearClaims(); err != nil {
		return 0, err
	}
	crash.Point("rebuild.cleared")
	span := segmentSpan(state.Window)
	total, batch := 0, s.db.NewBatch()
	err := each(func(id record.Identity, c dedup.Claim) error {
		if n := len(s.segments); n == 0 || s.segments[n-1].full(c.Received, span) {
			if err := s.addSegment(batch, c.Received); err != nil {
				return err
			}
		}
		seg := s.segments[len(s.segments)-1]
		if err := putClaim(batch, seg, id, c); err != nil {
			return err
		}
		seg.filter.add(identityHash(s.seed, id))
		if total++; total%rebuildBatch != 0 {
			return nil
		}
		if err := batch.Commit(pebble.NoSync); err != nil {
			return fmt.Errorf("write claims: %w", err)
		}
		batch = s.db.NewBatch()
		return nil
	})
	if err != nil {
		return total, joinClose(err, batch)
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		return total, fmt.Errorf("write claims: %w", err)
	}
	crash.Point("rebuild.written")
	if err := s.finishRebuild(state); err != nil {
		return total, err
	}
	crash.Point("rebuild.committed")
	s.saveFilters()
	s.state = state
	s.durable.Store(state.Last)
	return total, s.mark.write(state.Last)
}

// finishRebuild writes the new state and takes the mark away, durably.
func (s *Store) finishRebuild(state State) error {
	newest := 0
	if n := len(s.segments); n > 0 {
		// Counted anew: an identity may have been written twice, with claims
		// that a shorter window kept apart.
		if err := s.scanFilter(s.segments[n-1]); err != nil {
			return err
		}
		newest = s.segments[n-1].count
	}
	batch := s.db.NewBatch()
	if err := errors.Join(batch.Set(keyState, state.marshal(newest), nil), batch.Delete(keyRebuilding, nil)); err != nil {
		return joinClose(fmt.Errorf("write state: %w", err), batch)
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// clearClaims removes every claim and leaves the mark, durably.
func (s *Store) clearClaims() error {
	batch := s.db.NewBatch()
	for _, prefix := range []byte{prefixClaim, prefixSegment, prefixFilter} {
		if err := batch.DeleteRange([]byte{prefix}, prefixEnd(prefix), nil); err != nil {
			return joinClose(fmt.Errorf("clear claims: %w", err), batch)
		}
	}
	if err := batch.Set(keyRebuilding, nil, nil); err != nil {
		return joinClose(fmt.Errorf("clear claims: %w", err), batch)
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("clear claims: %w", err)
	}
	s.segments, s.unsaved = nil, nil
	return nil
}
