// Package privacystore keeps privacy jobs in the transactional store, refuses
// changes that they stand in the way of, and redacts what is kept there of a
// person. It decides nothing about the order in which a job is done.
//
// Invariants:
//   - of a person at most one job is not finished: a unique index is the judge;
//   - a change that asked whether there is a job, and a job that is made, are in
//     an order: the one that comes second sees the other;
//   - a write of a run is made only under its lease.
package privacystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// Store implements privacy.Store, privacy.Queue and the part of
// privacy.Customers that writes.
type Store struct{ db *sqldb.DB }

var (
	_ privacy.Store = (*Store)(nil)
	_ privacy.Queue = (*Store)(nil)
)

// New returns a Store that reads and writes db, which stays the caller's to
// close.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// The kinds of ids.
const (
	kindUser = "user_id"
	kindAnon = "anon_id"
)

func personOf(p privacy.Person) (kind string, person []byte) {
	if p.UserID != "" {
		return kindUser, []byte(p.UserID)
	}
	return kindAnon, []byte(p.AnonID)
}

// CreateJob implements privacy.Store.
func (s *Store) CreateJob(ctx context.Context, j privacy.Job, entry auditlog.Entry) (active string, err error) {
	kind, person := personOf(j.Person)
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		active = ""
		if _, err := q.LockProjectForPrivacyJob(ctx, j.Place.ProjectID); err != nil {
			return fmt.Errorf("lock a project: %w", err)
		}
		n, err := q.CreatePrivacyJob(ctx, sqldb.CreatePrivacyJobParams{
			ID: j.ID, ProjectID: j.Place.ProjectID, Kind: string(j.Kind), PersonKind: kind, Person: person,
			Phase: string(j.Phase), Server: j.Server[:], CreatedAt: j.CreatedAt.UnixMicro(),
		})
		if err != nil {
			return fmt.Errorf("create a privacy job: %w", err)
		}
		if n == 0 {
			active, err = q.FindActivePrivacyJob(ctx, sqldb.FindActivePrivacyJobParams{
				ProjectID: j.Place.ProjectID, PersonKind: kind, Person: person,
			})
			if err != nil {
				return fmt.Errorf("find the privacy job of a person: %w", err)
			}
			return nil
		}
		return sqlstore.CreateEntries(ctx, q, entry)
	})
	return active, err
}

// FindJob implements privacy.Store.
func (s *Store) FindJob(ctx context.Context, at privacy.Place, jobID string) (privacy.Job, bool, error) {
	row, err := s.db.Read().FindPrivacyJob(ctx, sqldb.FindPrivacyJobParams{ProjectID: at.ProjectID, ID: jobID})
	if errors.Is(err, sql.ErrNoRows) {
		return privacy.Job{}, false, nil
	}
	if err != nil {
		return privacy.Job{}, false, fmt.Errorf("read a privacy job: %w", err)
	}
	all, err := s.jobsOf(ctx, []sqldb.PrivacyJob{row}, at)
	if err != nil {
		return privacy.Job{}, false, err
	}
	return all[0], true, nil
}

// ListJobs implements privacy.Store.
func (s *Store) ListJobs(ctx context.Context, at privacy.Place, before string, limit int) ([]privacy.Job, error) {
	rows, err := s.db.Read().ListPrivacyJobs(ctx, sqldb.ListPrivacyJobsParams{
		ProjectID: at.ProjectID, Before: before, Size: int32(min(max(limit, 0), math.MaxInt32)),
	})
	if err != nil {
		return nil, fmt.Errorf("read privacy jobs: %w", err)
	}
	return s.jobsOf(ctx, rows, at)
}

// jobsOf are jobs as they are shown: one whose lease is over is queued, since
// nobody does it, and who comes back begins with it.
func (s *Store) jobsOf(ctx context.Context, rows []sqldb.PrivacyJob, at privacy.Place) (all []privacy.Job, err error) {
	var now time.Time
	all = make([]privacy.Job, len(rows))
	for i := range rows {
		all[i] = jobOf(&rows[i], at)
		if !rows[i].LeaseUntil.Valid {
			continue
		}
		if now.IsZero() {
			if now, err = s.db.Now(ctx); err != nil {
				return nil, err
			}
		}
		if rows[i].LeaseUntil.Int64 < now.UnixMicro() {
			all[i].Status = privacy.Queued
		}
	}
	return all, nil
}

// CancelJob implements privacy.Store.
func (s *Store) CancelJob(ctx context.Context, at privacy.Place, jobID string, entry auditlog.Entry) (done bool, err error) {
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		n, err := q.CancelPrivacyJob(ctx, sqldb.CancelPrivacyJobParams{ProjectID: at.ProjectID, ID: jobID, At: entry.At.UnixMicro()})
		if err != nil {
			return fmt.Errorf("cancel a privacy job: %w", err)
		}
		if done = n == 1; !done {
			return nil
		}
		return sqlstore.CreateEntries(ctx, q, entry)
	})
	return done && err == nil, err
}

// lostAfter is how long ago a lease has ended of a server that may be given up.
const lostAfter = time.Hour

// AbandonJob implements privacy.Store.
func (s *Store) AbandonJob(ctx context.Context, p privacy.AbandonParams) (done bool, err error) {
	now, err := s.db.Now(ctx)
	if err != nil {
		return false, err
	}
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		n, err := q.AbandonPrivacyJob(ctx, sqldb.AbandonPrivacyJobParams{
			ProjectID: p.Place.ProjectID, ID: p.JobID, Server: p.Server[:], Since: now.Add(-lostAfter).UnixMicro(),
			Error: p.Reason, At: p.Entry.At.UnixMicro(),
		})
		if err != nil {
			return fmt.Errorf("give up a privacy job: %w", err)
		}
		if done = n == 1; !done {
			return nil
		}
		return sqlstore.CreateEntries(ctx, q, p.Entry)
	})
	return done && err == nil, err
}

// CreateEntry implements privacy.Store.
func (s *Store) CreateEntry(ctx context.Context, e auditlog.Entry) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error { return sqlstore.CreateEntries(ctx, q, e) })
}

func jobOf(row *sqldb.PrivacyJob, at privacy.Place) privacy.Job {
	j := privacy.Job{
		Number: row.Number, ID: row.ID, Place: at, Kind: privacy.Kind(row.Kind), Status: privacy.Status(row.Status),
		Phase: privacy.Phase(row.Phase), Progress: row.Progress, Lease: privacy.Lease{JobID: row.ID, Epoch: row.Epoch},
		Failures: row.Failures, Error: row.Error.String,
		Position: uint64(row.ErasePosition.Int64), RecordedAt: sqldb.TimeOf(row.RecordedAt),
		ErasedFromLogAt: sqldb.TimeOf(row.ErasedFromLogAt), ArchiveBytes: row.ArchiveBytes.Int64, ArchiveUntil: sqldb.TimeOf(row.ArchiveUntil),
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), StartedAt: sqldb.TimeOf(row.StartedAt), FinishedAt: sqldb.TimeOf(row.FinishedAt),
	}
	copy(j.Server[:], row.Server)
	copy(j.Lease.Owner[:], row.Owner)
	if row.PersonKind == kindUser {
		j.Person.UserID = string(row.Person)
	} else {
		j.Person.AnonID = string(row.Person)
	}
	return j
}
