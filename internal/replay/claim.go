package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/crash"
)

// How a blob and its row stay together although no transaction spans both.
//
// A blob has a name that no other attempt uses. Before it is written the name
// is claimed: a row of replay_blobs, pending. The transaction that makes the
// chunk takes the claim away; if there is none any more it makes no chunk. The
// sweep dooms claims that are old, each by changing the row that the other
// would take away, and only then deletes the blob; and a deletion of a chunk
// takes away its row and dooms its blob in one transaction. So
//
//   - a chunk's blob is never deleted: of the chunk's transaction and the
//     sweep's, one changes the claim's row first, and the other finds it
//     changed. However old the claim is, and whatever the clocks say, they
//     cannot both go on;
//   - a blob without a chunk is deleted in the end: before it is written there
//     is a row of it, and that goes only when the blob has a chunk, or has been
//     deleted. A crash between any two steps leaves the row;
//   - an attempt that was slower than the sweep writes its blob again, under
//     another name: its own has been doomed once more by then, since the blob
//     may have been written after the sweep had passed. A sweep that is between
//     the two, and has found nothing to delete, does not take that for its own:
//     it forgets only what was doomed when it looked.
//
// The age decides only how long garbage lies about, and how slow an attempt may
// be before it has to begin again.

const (
	// claimAge is how old a claim is when it is taken for that of an attempt
	// that has ended.
	claimAge = time.Hour
	// sweepPage is how many blobs are deleted between two looks.
	sweepPage = 100
)

// Sweep deletes the blobs that no chunk has and no attempt is about to use. It
// returns how many it has deleted. It may be called at any time; those who call
// it at once take turns.
func (s *Service) Sweep(ctx context.Context) (int, error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	if err := s.doomOld(ctx); err != nil {
		return 0, err
	}
	return s.deleteDoomed(ctx)
}

// doomOld dooms the claims of attempts that have ended.
func (s *Service) doomOld(ctx context.Context) error {
	now := s.now()
	before := now.Add(-claimAge)
	if s.params.Alone && before.Before(s.began) {
		before = s.began // those of earlier processes are nobody's
	}
	for {
		n, err := s.params.Store.Doom(ctx, before, now, sweepPage)
		if err != nil {
			return fmt.Errorf("look for blobs that nobody has: %w", err)
		}
		if n < sweepPage {
			return nil
		}
	}
}

// deleteDoomed deletes what is doomed. What cannot be deleted now is left for
// the next sweep, and does not keep the rest; the first failure is returned. What
// is in another place is left to those who have that.
func (s *Service) deleteDoomed(ctx context.Context) (deleted int, err error) {
	var first error
	for after := ""; ; {
		doomed, err := s.params.Store.ListDoomed(ctx, after, sweepPage)
		if err != nil {
			return deleted, fmt.Errorf("look for blobs to delete: %w", err)
		}
		if len(doomed) == 0 {
			return deleted, first
		}
		if here, err := s.takeHome(ctx); err != nil || !here {
			return deleted, err
		}
		after = doomed[len(doomed)-1].Name
		gone, failed := s.deleteBlobs(ctx, doomed)
		crash.Point("replay.swept")
		if len(gone) > 0 {
			if err := s.params.Store.Forget(ctx, gone); err != nil {
				return deleted, fmt.Errorf("note that blobs are deleted: %w", err)
			}
		}
		deleted += len(gone)
		if first == nil {
			first = failed
		}
		if ctx.Err() != nil {
			return deleted, context.Cause(ctx)
		}
	}
}

// deleteBlobs returns those that are gone, and the first failure.
func (s *Service) deleteBlobs(ctx context.Context, doomed []Doomed) (gone []Doomed, failed error) {
	for _, one := range doomed {
		if err := s.params.Blobs.Delete(ctx, one.Name); err != nil {
			if failed == nil {
				failed = fmt.Errorf("delete a blob: %w", err)
			}
			continue
		}
		gone = append(gone, one)
	}
	return gone, failed
}
