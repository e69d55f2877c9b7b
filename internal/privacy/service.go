package privacy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// Params configures a [Service]; every member must be set.
type Params struct {
	Store    Store
	Archives *Archives
	// Alone says that no other server uses the store: an archive that is not in
	// the folder is nowhere then.
	Alone bool
	// Guard returns nil, or why nothing may be written now.
	Guard func() error
	Clock func() time.Time
	// Random is where ids come from: crypto/rand.Reader.
	Random io.Reader
	// Wake tells the worker that there is something to do.
	Wake func()
}

// Service makes, shows and cancels jobs.
type Service struct{ params Params }

// NewService returns a Service.
func NewService(p Params) *Service { return &Service{params: p} }

// Create makes a job. Faults: validation_failed; privacy_job_active, when a job
// about the person is not finished; unavailable.
func (s *Service) Create(ctx context.Context, by auditlog.Actor, at Place, kind Kind, p Person) (Job, error) {
	if err := validate(kind, p); err != nil {
		return Job{}, err
	}
	if err := s.params.Guard(); err != nil {
		return Job{}, fault.Wrap(api.CodeUnavailable, err, "the server cannot write now").With("applied", false)
	}
	now := s.now()
	j := Job{
		Place: at, Kind: kind, Person: p, Status: Queued, Phase: PhaseExports, Server: s.params.Archives.Server(), CreatedAt: now,
	}
	if kind == Export {
		j.Phase = PhaseArchive
	}
	var err error
	if j.ID, err = id.New(now, s.params.Random); err != nil {
		return Job{}, fmt.Errorf("name a privacy job: %w", err)
	}
	entry, err := s.entry(by, at, auditlog.PrivacyJobCreated, &j)
	if err != nil {
		return Job{}, err
	}
	active, err := s.params.Store.CreateJob(ctx, j, entry)
	if err != nil {
		return Job{}, fmt.Errorf("make a privacy job: %w", err)
	}
	if active != "" {
		return Job{}, Active(active)
	}
	s.params.Wake()
	return j, nil
}

// Get returns a job. Fault: not_found.
func (s *Service) Get(ctx context.Context, at Place, jobID string) (Job, error) {
	if !id.Valid(jobID) {
		return Job{}, noJob()
	}
	j, found, err := s.params.Store.FindJob(ctx, at, jobID)
	if err != nil {
		return Job{}, fmt.Errorf("find a privacy job: %w", err)
	}
	if !found {
		return Job{}, noJob()
	}
	return j, nil
}

// List returns at most limit jobs with ids below before, or any if that is
// empty, the latest first.
func (s *Service) List(ctx context.Context, at Place, before string, limit int) ([]Job, error) {
	all, err := s.params.Store.ListJobs(ctx, at, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list privacy jobs: %w", err)
	}
	return all, nil
}

// Cancel cancels a job and returns it. A job that is cancelled already stays
// so. A deletion of a server that is lost has failed then, whatever its step.
// Faults: not_found; conflict, when it is finished or its erase record may have
// been written; unavailable.
func (s *Service) Cancel(ctx context.Context, by auditlog.Actor, at Place, jobID string) (Job, error) {
	j, err := s.Get(ctx, at, jobID)
	if err != nil || j.Status == Cancelled {
		return j, err
	}
	entry, err := s.entry(by, at, auditlog.PrivacyJobCancelled, &j)
	if err != nil {
		return Job{}, err
	}
	done, err := s.params.Store.CancelJob(ctx, at, jobID, entry)
	if err == nil && !done && !s.params.Alone {
		entry.Details["status"] = string(Failed)
		done, err = s.params.Store.AbandonJob(ctx, AbandonParams{
			Place: at, JobID: jobID, Server: s.params.Archives.Server(), Reason: lostReason, Entry: entry,
		})
	}
	if err != nil {
		return Job{}, fmt.Errorf("cancel a privacy job: %w", err)
	}
	if j, err = s.Get(ctx, at, jobID); err != nil {
		return Job{}, err
	}
	if !done && j.Status != Cancelled {
		return Job{}, tooLate(&j)
	}
	return j, nil
}

// lostReason is the error of a deletion whose server is lost.
const lostReason = "the server that was asked for it has not finished it and was given up: " +
	"ask another one for what they share, and that one again if it comes back"

// tooLate is the refusal to cancel a job.
func tooLate(j *Job) error {
	if j.Status == Queued || j.Status == Running {
		return fault.New(api.CodeConflict, "the deletion has begun to erase and can be cancelled no more").With("status", j.Status)
	}
	return fault.New(api.CodeConflict, "the job is %s and can be cancelled no more", j.Status).With("status", j.Status)
}

// Archive opens the archive of a finished export, which the caller closes, and
// notes who asked for it. Faults: not_found, also once it is gone, for whatever
// reason; conflict, when there is none or it is on another server; unavailable.
func (s *Service) Archive(ctx context.Context, by auditlog.Actor, at Place, jobID string) (*os.File, error) {
	j, err := s.Get(ctx, at, jobID)
	if err != nil {
		return nil, err
	}
	switch {
	case j.Kind != Export:
		return nil, fault.New(api.CodeConflict, "a deletion has no archive")
	case j.Status != Succeeded:
		return nil, fault.New(api.CodeConflict, "the export is %s", j.Status).With("status", j.Status)
	case j.ArchiveUntil.IsZero() || !s.now().Before(j.ArchiveUntil):
		return nil, noArchive()
	}
	file, err := s.openArchive(&j)
	if err != nil {
		return nil, err
	}
	entry, err := s.entry(by, at, auditlog.PrivacyJobDownloaded, &j)
	if err == nil {
		err = s.params.Store.CreateEntry(ctx, entry)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// openArchive opens the file of an archive that is kept. It may be gone all the
// same: a backup holds none, and somebody may have removed it.
func (s *Service) openArchive(j *Job) (*os.File, error) {
	file, err := s.params.Archives.open(j.ID)
	switch {
	case errors.Is(err, os.ErrNotExist) && !s.params.Alone && j.Server != s.params.Archives.Server():
		return nil, fault.New(api.CodeConflict, "the archive is on the server that has written it")
	case errors.Is(err, os.ErrNotExist):
		return nil, noArchive()
	case err != nil:
		return nil, fmt.Errorf("open an archive: %w", err)
	default:
		return file, nil
	}
}

func (s *Service) entry(by auditlog.Actor, at Place, action auditlog.Action, j *Job) (auditlog.Entry, error) {
	return auditlog.Source{Clock: s.now, Random: s.params.Random}.New(auditlog.Entry{
		OrganizationID: at.OrganizationID, ProjectID: at.ProjectID, Actor: by, Action: action,
		Object: auditlog.Object{Kind: auditlog.ObjectPrivacyJob, ID: j.ID}, Details: map[string]string{"kind": string(j.Kind)},
	})
}

func (s *Service) now() time.Time { return s.params.Clock().UTC().Truncate(time.Microsecond) }

func noJob() error { return fault.New(api.CodeNotFound, "there is no such privacy job") }

func noArchive() error {
	return fault.New(api.CodeNotFound, "the archive is gone: it is kept for a limited time")
}
