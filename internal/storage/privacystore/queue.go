package privacystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// The statements of a claim. They are not generated, because what is locked is
// passed over on one engine and cannot be locked on the other, and because only
// one of them has leases that end.
var (
	// What is put off for longer than anything is was put off by a clock that has
	// been set back since.
	queuedText = `status = 'queued' AND (next_attempt_at IS NULL OR next_attempt_at <= $1 OR next_attempt_at - ` +
		strconv.FormatInt(privacy.LongestWait.Microseconds(), 10) + ` > $1)`

	// Who asks does nothing: what it is said to do, it has left without having
	// been able to say so, or has claimed without having heard of it.
	leftText = `status = 'running' AND owner = $2`

	// On a store that one process uses, whatever folder made the job.
	findText = `SELECT id FROM privacy_jobs WHERE ` + queuedText + ` OR ` + leftText + ` ORDER BY number LIMIT 1`

	findSharedText = `SELECT id FROM privacy_jobs
WHERE server = $3 AND (` + queuedText + ` OR ` + leftText + ` OR status = 'running' AND lease_until < ` + databaseNow + `) ORDER BY number LIMIT 1`
)

const (
	claimText = `UPDATE privacy_jobs
SET status = 'running', owner = $2, epoch = epoch + 1, next_attempt_at = NULL, started_at = COALESCE(started_at, $3), lease_until = `

	renewText = `UPDATE privacy_jobs SET lease_until = `

	heldText = ` WHERE id = $1 AND status = 'running' AND owner = $2 AND epoch = $3`

	// The clock by which leases end where several processes share a store:
	// PostgreSQL.
	databaseNow = `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)`
)

// goneAfter is how long ago a lease has ended, by whatever clock, of a process
// that surely does nothing any more.
const goneAfter = time.Minute

// until is when a lease ends that begins now; null where leases end with their
// process.
func until(lease time.Duration) string {
	if lease == 0 {
		return "NULL"
	}
	return databaseNow + " + " + strconv.FormatInt(lease.Microseconds(), 10)
}

// VoidJobs implements privacy.Queue.
func (s *Store) VoidJobs(ctx context.Context, owner [16]byte) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error {
		if _, err := q.VoidPrivacyJobs(ctx, owner[:]); err != nil {
			return fmt.Errorf("queue privacy jobs again: %w", err)
		}
		return nil
	})
}

// ClaimJob implements privacy.Queue.
func (s *Store) ClaimJob(ctx context.Context, p privacy.ClaimParams) (j privacy.Job, found bool, err error) {
	text, args := findText, []any{p.Now.UnixMicro(), p.Owner[:]}
	if p.LeaseFor > 0 {
		text, args = findSharedText, append(args, p.Server[:])
	}
	if idle, err := s.idle(ctx, text, args); err != nil || idle {
		return privacy.Job{}, false, err
	}
	err = s.db.WriteBatch(ctx, func(b *sqldb.Batch) error {
		found = false
		var jobID string
		err := b.Run(ctx, []sqldb.Statement{{Text: b.Claiming(text), Args: args, Row: func(scan func(...any) error) error {
			found = true
			return scan(&jobID)
		}}})
		if err != nil || !found {
			return err
		}
		if err := b.Run(ctx, []sqldb.Statement{{
			Text: claimText + until(p.LeaseFor) + ` WHERE id = $1`, Args: []any{jobID, p.Owner[:], p.Now.UnixMicro()},
		}}); err != nil {
			return err
		}
		row, err := b.Queries().GetPrivacyJob(ctx, jobID)
		if err != nil {
			return err
		}
		j = jobOf(&row.PrivacyJob, privacy.Place{
			OrganizationID: row.OrganizationID, ProjectID: row.PrivacyJob.ProjectID, Number: uint32(row.ProjectNumber),
		})
		return nil
	})
	if err != nil {
		return privacy.Job{}, false, fmt.Errorf("claim a privacy job: %w", err)
	}
	return j, found, nil
}

// idle says that there is nothing to claim, without writing anything.
func (s *Store) idle(ctx context.Context, text string, args []any) (idle bool, err error) {
	var jobID string
	err = s.db.Reader().QueryRowContext(ctx, text, args...).Scan(&jobID)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for privacy jobs: %w", err)
	}
	return false, nil
}

// RenewJob implements privacy.Queue.
func (s *Store) RenewJob(ctx context.Context, l privacy.Lease, leaseFor time.Duration) (held bool, err error) {
	if leaseFor == 0 {
		var n int
		err := s.db.Reader().QueryRowContext(ctx, `SELECT COUNT(*) FROM privacy_jobs`+heldText, l.JobID, l.Owner[:], l.Epoch).Scan(&n)
		if err != nil {
			return false, fmt.Errorf("look at the lease of a privacy job: %w", err)
		}
		return n == 1, nil
	}
	err = s.db.WriteTx(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, renewText+until(leaseFor)+heldText, l.JobID, l.Owner[:], l.Epoch)
		if err != nil {
			return fmt.Errorf("renew the lease of a privacy job: %w", err)
		}
		n, err := done.RowsAffected()
		held = n == 1
		return err
	})
	return held, err
}

// AdvanceJob implements privacy.Queue.
func (s *Store) AdvanceJob(ctx context.Context, j *privacy.Job) (bool, error) {
	return s.held(ctx, func(q *sqldb.Queries) (int64, error) {
		return q.AdvancePrivacyJob(ctx, sqldb.AdvancePrivacyJobParams{
			ID: j.ID, Owner: j.Lease.Owner[:], Epoch: j.Lease.Epoch, Phase: string(j.Phase), Progress: j.Progress,
			ErasePosition: positionOf(j), RecordedAt: sqldb.NullTime(j.RecordedAt), Failures: j.Failures, Error: sqldb.NullString(j.Error),
		})
	})
}

// FinishJob implements privacy.Queue.
func (s *Store) FinishJob(ctx context.Context, j *privacy.Job, entry auditlog.Entry) (bool, error) {
	return s.held(ctx, func(q *sqldb.Queries) (int64, error) {
		n, err := q.FinishPrivacyJob(ctx, sqldb.FinishPrivacyJobParams{
			ID: j.ID, Owner: j.Lease.Owner[:], Epoch: j.Lease.Epoch, Status: string(j.Status), Phase: string(j.Phase), Progress: j.Progress,
			Failures: j.Failures, Error: sqldb.NullString(j.Error), ErasedFromLogAt: sqldb.NullTime(j.ErasedFromLogAt),
			ArchiveBytes: sql.NullInt64{Int64: j.ArchiveBytes, Valid: j.ArchiveBytes > 0}, ArchiveUntil: sqldb.NullTime(j.ArchiveUntil),
			FinishedAt: sqldb.NullTime(j.FinishedAt),
		})
		if err != nil || n == 0 {
			return n, err
		}
		return n, sqlstore.CreateEntries(ctx, q, entry)
	})
}

// ReleaseJob implements privacy.Queue.
func (s *Store) ReleaseJob(ctx context.Context, j *privacy.Job, at time.Time) error {
	_, err := s.held(ctx, func(q *sqldb.Queries) (int64, error) {
		return q.ReleasePrivacyJob(ctx, sqldb.ReleasePrivacyJobParams{
			ID: j.ID, Owner: j.Lease.Owner[:], Epoch: j.Lease.Epoch, NextAttemptAt: sqldb.NullTime(at), Error: sqldb.NullString(j.Error),
			Failures: j.Failures,
		})
	})
	return err
}

// held runs a write of a run and says whether its lease was in force.
func (s *Store) held(ctx context.Context, write func(*sqldb.Queries) (int64, error)) (held bool, err error) {
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		n, err := write(q)
		if held = n == 1; err != nil {
			return fmt.Errorf("write what a privacy job has done: %w", err)
		}
		return nil
	})
	return held && err == nil, err
}

func positionOf(j *privacy.Job) sql.NullInt64 {
	return sql.NullInt64{Int64: int64(min(j.Position, math.MaxInt64)), Valid: j.Position > 0}
}

// ExpiredArchives implements privacy.Queue.
func (s *Store) ExpiredArchives(ctx context.Context, at time.Time, limit int) ([]string, error) {
	list, err := s.db.Read().ListExpiredPrivacyArchives(ctx, sqldb.ListExpiredPrivacyArchivesParams{
		At: sqldb.NullTime(at), Size: int32(min(max(limit, 0), math.MaxInt32)),
	})
	if err != nil {
		return nil, fmt.Errorf("find expired archives: %w", err)
	}
	return list, nil
}

// ArchivesOf implements privacy.Queue.
func (s *Store) ArchivesOf(ctx context.Context, at privacy.Place, p privacy.Person, now time.Time) (list []string, writing bool, err error) {
	kind, person := personOf(p)
	n, err := s.db.Read().CountPrivacyExportsOfPerson(ctx, sqldb.CountPrivacyExportsOfPersonParams{ // before: they may end in between
		ProjectID: at.ProjectID, PersonKind: kind, Person: person, Ended: now.Add(-goneAfter).UnixMicro(),
	})
	if err != nil {
		return nil, false, fmt.Errorf("look for exports about a person: %w", err)
	}
	list, err = s.db.Read().ListPrivacyArchivesOfPerson(ctx, sqldb.ListPrivacyArchivesOfPersonParams{
		ProjectID: at.ProjectID, PersonKind: kind, Person: person,
	})
	if err != nil {
		return nil, false, fmt.Errorf("find the archives about a person: %w", err)
	}
	return list, n > 0, nil
}

// ForgetArchive implements privacy.Queue.
func (s *Store) ForgetArchive(ctx context.Context, jobID string) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error {
		if _, err := q.ForgetPrivacyArchive(ctx, jobID); err != nil {
			return fmt.Errorf("forget an archive: %w", err)
		}
		return nil
	})
}

// HasArchive implements privacy.Queue.
func (s *Store) HasArchive(ctx context.Context, jobID string) (bool, error) {
	n, err := s.db.Read().FindPrivacyArchive(ctx, jobID)
	if err != nil {
		return false, fmt.Errorf("look for the job of an archive: %w", err)
	}
	return n > 0, nil
}
