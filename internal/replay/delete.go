package replay

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// deletePage is how many chunks go in one transaction.
const deletePage = 200

// Place names a session and who deletes it.
type Place struct {
	Actor                                auditlog.Actor
	OrganizationID, ProjectID, SessionID string
}

// Delete deletes a session. The marks of its chunks stay: a repeat of one does
// not bring it back, and a chunk that was never received is new. Faults:
// not_found; privacy_job_active, while a privacy job about somebody in it is not
// finished; unavailable.
func (s *Service) Delete(ctx context.Context, at Place) error {
	hash := SessionHash(at.SessionID)
	if _, found, err := s.params.Store.FindSession(ctx, at.ProjectID, hash); err != nil || !found {
		return joinNotFound(err)
	}
	entry, err := auditlog.Source{Clock: s.now, Random: s.params.Random}.New(auditlog.Entry{
		OrganizationID: at.OrganizationID, ProjectID: at.ProjectID, Actor: at.Actor, Action: auditlog.ReplayDeleted,
		Object: auditlog.Object{Kind: auditlog.ObjectReplay, ID: hex.EncodeToString(hash[:])}, // an entry stays for ever, as a mark does
	})
	if err != nil {
		return err
	}
	n, err := s.deleteAll(ctx, DeleteParams{ProjectID: at.ProjectID, Session: &hash, Audit: &entry})
	if err != nil || n == 0 { // somebody else was faster
		return joinNotFound(err)
	}
	return nil
}

// joinNotFound is not_found unless something has failed.
func joinNotFound(err error) error {
	if err != nil {
		return fmt.Errorf("delete a replay: %w", err)
	}
	return noReplay()
}

// DeletePerson deletes the chunks that belong to a person, all or a part, and
// returns how many there were. Their marks stay. It may be repeated, also after it was cut
// short; a chunk that is being taken in meanwhile is deleted, or is new after
// it. Faults: validation_failed when no id or both are given, unavailable.
func (s *Service) DeletePerson(ctx context.Context, projectID string, p Part) (chunks int, err error) {
	if err := p.Person.check(); err != nil {
		return 0, err
	}
	return s.deleteAll(ctx, DeleteParams{ProjectID: projectID, Part: &p})
}

func (p Person) check() error {
	if (p.UserID == "") == (p.AnonID == "") {
		return fault.Field("user_id", "exactly one of user_id and anon_id must be given")
	}
	return nil
}

// DeleteOlder deletes at most so many chunks that were received longer ago than
// they are kept, the oldest first, and returns how many that were: less than most
// means that there are no more. Age is counted up to the newest event of any
// server, and to the shared clock, where these are earlier than its Now. Their
// marks stay. Fault: unavailable.
func (s *Service) DeleteOlder(ctx context.Context, projectID string, a Age, most int) (chunks int, err error) {
	for chunks < most {
		limit := min(deletePage, most-chunks)
		n, err := s.delete(ctx, DeleteParams{ProjectID: projectID, Age: &a, Limit: limit})
		if chunks += n; err != nil {
			return chunks, err
		}
		if n < limit {
			break
		}
	}
	s.removeBlobs(ctx, chunks)
	return chunks, nil
}

// deleteAll deletes all chunks that are meant, in bounded steps.
func (s *Service) deleteAll(ctx context.Context, p DeleteParams) (chunks int, err error) {
	p.Limit = deletePage
	for {
		n, err := s.delete(ctx, p)
		if chunks += n; err != nil {
			return chunks, err
		}
		if n == 0 {
			s.removeBlobs(ctx, chunks)
			return chunks, nil
		}
		p.Audit = nil
	}
}

func (s *Service) delete(ctx context.Context, p DeleteParams) (int, error) {
	p.At = s.now()
	n, err := s.params.Store.DeleteChunks(ctx, p)
	if err != nil {
		return 0, fmt.Errorf("delete chunks of replays: %w", err)
	}
	if n > 0 {
		crash.Point("replay.deleted")
	}
	return n, nil
}

// removeBlobs deletes the blobs of chunks that were deleted. If that fails, or
// the process dies, or somebody else deletes blobs just now, the sweep does it
// later: what was deleted cannot be read in any case.
func (s *Service) removeBlobs(ctx context.Context, chunks int) {
	if chunks == 0 || !s.sweeping.TryLock() {
		return
	}
	defer s.sweeping.Unlock()
	if _, err := s.deleteDoomed(ctx); err != nil {
		s.params.Log.Warn("blobs of deleted replays are still there, and are deleted later", "error", err)
	}
}

// Companions returns whom else the chunks of a person name that were received
// before a time: the anonymous ids beside a user, or the users beside an
// anonymous id. What is exported of one of them holds these chunks, too. Fault:
// validation_failed when no id or both are given.
func (s *Service) Companions(ctx context.Context, projectID string, p Person, before time.Time) ([]Person, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	found, err := s.params.Store.ListCompanions(ctx, projectID, p, before)
	if err != nil {
		return nil, fmt.Errorf("find who shares replays with a person: %w", err)
	}
	return found, nil
}

// Newest returns the latest time at which a chunk of a project was received, by
// whatever clock; zero if there is none that can be read.
func (s *Service) Newest(ctx context.Context, projectID string) (time.Time, error) {
	newest, err := s.params.Store.NewestChunk(ctx, projectID)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the newest chunk of replays: %w", err)
	}
	return newest, nil
}

// ExportPerson calls fn with each chunk of what belongs to a person, in the order
// of sessions and numbers; events holds them as they were sent, and is nil of one
// whose blob is missing or damaged. It ends with fn's error, with conflict when the
// blobs are in another place, and with unavailable when the store of
// blobs does not answer. A chunk that is deleted meanwhile is
// left out.
func (s *Service) ExportPerson(ctx context.Context, projectID string, p Part, fn func(session string, chunk Chunk, events io.WriterTo) error) error {
	if err := p.Person.check(); err != nil {
		return err
	}
	q := PersonQuery{ProjectID: projectID, Part: p, AfterSession: 0, After: -1, Limit: sweepPage}
	for {
		page, err := s.params.Store.ListPersonChunks(ctx, q)
		if err != nil {
			return fmt.Errorf("list the chunks of a person: %w", err)
		}
		for _, one := range page {
			if err := s.export(ctx, projectID, one, fn); err != nil {
				return err
			}
			q.AfterSession, q.After = one.Session, one.Chunk
		}
		if len(page) < q.Limit {
			return nil
		}
	}
}

func (s *Service) export(ctx context.Context, projectID string, c Chunk, fn func(string, Chunk, io.WriterTo) error) error {
	events, err := s.Open(ctx, projectID, c.SessionID, c.Chunk)
	switch {
	case errors.Is(err, noChunk()):
		return nil
	case err != nil && isUnreadable(err):
		s.params.Log.Warn("a chunk that is exported is missing or damaged in storage", "chunk", c.Chunk, "blob", c.Blob, "error", err)
		return fn(c.SessionID, c, nil)
	case err != nil:
		return err
	}
	return fn(c.SessionID, c, events)
}
