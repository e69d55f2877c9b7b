package replaystore

import (
	"context"
	"fmt"
	"slices"

	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/privacystore"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// target is a chunk that is to go.
type target struct {
	session int64
	blob    string
}

// DeleteChunks implements replay.Store.
func (s *Store) DeleteChunks(ctx context.Context, p replay.DeleteParams) (deleted int, err error) {
	if p.Age != nil {
		if p.Age, err = s.vouched(ctx, *p.Age); err != nil {
			return 0, err
		}
	}
	err = s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		deleted = 0
		q := b.Queries()
		if err := refuse(ctx, b, &p); err != nil {
			return err
		}
		targets, err := findTargets(ctx, q, &p)
		if err != nil {
			return fmt.Errorf("find chunks to delete: %w", err)
		}
		sessions, err := lockSessions(ctx, q, targets)
		if err != nil {
			return err
		}
		for _, one := range targets {
			n, err := deleteChunk(ctx, q, one, p.At.UnixMicro())
			if err != nil {
				return err
			}
			deleted += n
		}
		if err := sumUp(ctx, q, sessions); err != nil {
			return err
		}
		if deleted == 0 || p.Audit == nil {
			return nil
		}
		return sqlstore.CreateEntries(ctx, q, *p.Audit)
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}

// vouched is an age that is not counted up to a time that the store's own clock
// has not come to: that of one server of several may be ahead, and so the events
// that it has received.
func (s *Store) vouched(ctx context.Context, a replay.Age) (*replay.Age, error) {
	now, err := s.db.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the time that recordings are old by: %w", err)
	}
	if now.Before(a.Now) {
		a.Now = now
	}
	return &a, nil
}

// refuse returns privacy_job_active when a session is to be deleted while a
// privacy job about somebody in it is not finished.
func refuse(ctx context.Context, b *sqldb.Batch, p *replay.DeleteParams) error {
	if p.Session == nil {
		return nil
	}
	persons, err := b.Queries().ListReplayPersonsOfSession(ctx, sqldb.ListReplayPersonsOfSessionParams{
		ProjectID: p.ProjectID, SessionHash: p.Session[:],
	})
	if err != nil {
		return fmt.Errorf("find who is in a session: %w", err)
	}
	for _, one := range persons {
		for _, who := range []privacy.Person{{UserID: string(one.UserID)}, {AnonID: string(one.AnonID)}} {
			if who == (privacy.Person{}) {
				continue
			}
			if err := privacystore.RefusePerson(ctx, b, p.ProjectID, who); err != nil {
				return err
			}
		}
	}
	return nil
}

func findTargets(ctx context.Context, q *sqldb.Queries, p *replay.DeleteParams) ([]target, error) {
	var targets []target
	switch {
	case p.Session != nil:
		rows, err := q.ListReplayChunksOfSession(ctx, sqldb.ListReplayChunksOfSessionParams{
			ProjectID: p.ProjectID, SessionHash: p.Session[:], Size: sizeOf(p.Limit),
		})
		for _, row := range rows {
			targets = append(targets, target{row.SessionNumber, row.Blob})
		}
		return targets, err
	case p.Part != nil:
		rows, err := listPersonChunks(ctx, q, replay.PersonQuery{ProjectID: p.ProjectID, Part: *p.Part, After: -1, Limit: p.Limit})
		for i := range rows {
			targets = append(targets, target{rows[i].SessionNumber, rows[i].Blob})
		}
		return targets, err
	default:
		rows, err := q.ListReplayChunksOlder(ctx, sqldb.ListReplayChunksOlderParams{
			ProjectID: p.ProjectID, Before: p.Age.Now.Add(-p.Age.Keep).UnixMicro(), Keep: p.Age.Keep.Microseconds(), Size: sizeOf(p.Limit),
		})
		for _, row := range rows {
			targets = append(targets, target{row.SessionNumber, row.Blob})
		}
		return targets, err
	}
}

// lockSessions keeps others from making and deleting chunks of the sessions
// that are touched, in the order of their numbers.
func lockSessions(ctx context.Context, q *sqldb.Queries, targets []target) ([]int64, error) {
	var sessions []int64
	for _, one := range targets {
		sessions = append(sessions, one.session)
	}
	slices.Sort(sessions)
	sessions = slices.Compact(sessions)
	for _, number := range sessions {
		if err := q.LockReplaySession(ctx, number); err != nil {
			return nil, fmt.Errorf("lock a session: %w", err)
		}
	}
	return sessions, nil
}

// deleteChunk deletes a chunk that may be gone by now, and dooms its blob.
func deleteChunk(ctx context.Context, q *sqldb.Queries, one target, at int64) (int, error) {
	n, err := q.DeleteReplayChunk(ctx, one.blob)
	if err != nil || n == 0 {
		return 0, err
	}
	if err := q.DoomReplayBlob(ctx, sqldb.DoomReplayBlobParams{Name: one.blob, Since: at}); err != nil {
		return 0, fmt.Errorf("doom the blob of a chunk: %w", err)
	}
	return 1, nil
}

// sumUp makes sessions say what is left of them.
func sumUp(ctx context.Context, q *sqldb.Queries, sessions []int64) error {
	for _, number := range sessions {
		n, err := q.DeleteEmptyReplaySession(ctx, number)
		if err != nil {
			return fmt.Errorf("delete a session: %w", err)
		}
		if n > 0 {
			continue
		}
		if err := q.SumUpReplaySession(ctx, number); err != nil {
			return fmt.Errorf("sum up a session: %w", err)
		}
	}
	return nil
}
