package privacy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
)

const (
	// pollInterval is how soon a worker sees what another process has left, and
	// what is to be tried again; and that a job of its own was cancelled.
	pollInterval = time.Second
	// sweepInterval is how often archives are removed that are kept no more.
	sweepInterval = time.Minute
	// sweepSize is how many are removed at once.
	sweepSize = 100
	// settleTimeout limits what is written after a run that was stopped.
	settleTimeout = 5 * time.Second
	// maxExportFailures ends an export; a deletion is never given up.
	maxExportFailures = 5
	// firstWait is the first wait before a step is done again; they double.
	firstWait = time.Second
	// errorLimit is how much of an error is kept, in characters.
	errorLimit = 300
)

// WorkerParams configures a [Worker]; every member must be set.
type WorkerParams struct {
	Queue     Queue
	Archives  *Archives
	Intake    Intake
	Events    Events
	Replays   Replays
	Customers Customers
	// Owner names this process: new with each start.
	Owner [16]byte
	// LeaseFor is how long a lease is in force that is not renewed; 0 on a
	// store that only this process uses, where leases end with it.
	LeaseFor time.Duration
	// KeepArchives is how long the archive of a finished export is kept.
	KeepArchives time.Duration
	// Guard returns nil, or why nothing may be written now.
	Guard func() error
	Clock func() time.Time
	// Random is where ids come from: crypto/rand.Reader.
	Random io.Reader
	Log    *slog.Logger
}

// Worker does jobs, one at a time. Several may work on one store.
type Worker struct {
	params WorkerParams
	woken  chan struct{}
	// voided says that what earlier owners did is queued again.
	voided bool
	// sweepAt is when archives are looked at again.
	sweepAt time.Time
}

// NewWorker returns a Worker, which does nothing until it runs.
func NewWorker(p WorkerParams) *Worker {
	return &Worker{params: p, woken: make(chan struct{}, 1)}
}

// Wake tells the worker that there may be a job. It never waits.
func (w *Worker) Wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Run does jobs until ctx is done; the one under way is then queued again, and
// goes on from its step.
func (w *Worker) Run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err := w.round(ctx); err != nil && ctx.Err() == nil {
			w.params.Log.Warn("privacy jobs are not being done", "error", err)
		}
		select {
		case <-w.woken:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// round does all jobs that can be done now.
func (w *Worker) round(ctx context.Context) error {
	if !w.voided {
		if err := w.params.Queue.VoidJobs(ctx, w.params.Owner); err != nil {
			return err
		}
		w.voided = true
	}
	for ctx.Err() == nil {
		if err := w.sweep(ctx); err != nil {
			return err
		}
		j, found, err := w.params.Queue.ClaimJob(ctx, ClaimParams{
			Server: w.params.Archives.Server(), Owner: w.params.Owner, LeaseFor: w.params.LeaseFor, Now: w.now(),
		})
		if err != nil || !found {
			return err
		}
		if err := w.do(ctx, &j); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the archives that are kept no more, and what is left of exports
// that nobody is writing.
func (w *Worker) sweep(ctx context.Context) error {
	now := w.now()
	if now.Before(w.sweepAt) {
		return nil
	}
	for {
		expired, err := w.params.Queue.ExpiredArchives(ctx, now, sweepSize)
		if err != nil {
			return err
		}
		if err := w.forget(ctx, expired); err != nil {
			return err
		}
		if len(expired) < sweepSize {
			break
		}
	}
	if err := w.params.Archives.sweep(ctx, w.params.Queue.HasArchive); err != nil {
		return err
	}
	w.sweepAt = now.Add(sweepInterval)
	return nil
}

// forget removes archives: first the files, so that none is left that nobody
// knows of.
func (w *Worker) forget(ctx context.Context, jobIDs []string) error {
	for _, jobID := range jobIDs {
		if err := w.params.Archives.remove(jobID); err != nil {
			return err
		}
		if err := w.params.Queue.ForgetArchive(ctx, jobID); err != nil {
			return err
		}
	}
	return nil
}

// errLost ends a run whose job was cancelled or claimed by another.
var errLost = errors.New("the lease of the privacy job has passed on")

// errWaits ends a run whose job waits for what others do. It is no failure: the
// step is done again later, and other jobs go on meanwhile.
var errWaits = errors.New("the privacy job waits for others")

// do does one job, as far as it gets, under its lease. An error says that what
// became of it could not be written: it is claimed again.
func (w *Worker) do(ctx context.Context, j *Job) error {
	leased, cancel := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		w.keep(leased, cancel, j.Lease)
	}()
	var err error
	if j.Kind == Export {
		err = w.export(leased, j)
	} else {
		err = w.erase(leased, j)
	}
	if cause := context.Cause(leased); errors.Is(cause, errLost) {
		err = cause
	}
	cancel(nil)
	<-kept
	if err != nil {
		err = w.settle(ctx, j, err)
	}
	return err
}

// keep renews the lease of a run until its context ends, and ends the run when
// the lease has passed on, or may have without this process hearing of it.
func (w *Worker) keep(ctx context.Context, cancel context.CancelCauseFunc, l Lease) {
	every := pollInterval
	if w.params.LeaseFor > 0 {
		every = min(every, w.params.LeaseFor/3)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := time.Now()
		held, err := w.params.Queue.RenewJob(ctx, l, w.params.LeaseFor)
		switch {
		case err == nil && held:
			last = asked
		case err == nil, w.params.LeaseFor > 0 && time.Since(last)+every >= w.params.LeaseFor:
			cancel(errLost)
			return
		}
	}
}

// settle writes what becomes of a job that was not finished.
func (w *Worker) settle(ctx context.Context, j *Job, cause error) error {
	stopped := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var err error
	switch {
	case errors.Is(cause, errLost):
		err = w.params.Archives.sweep(ctx, w.params.Queue.HasArchive)
	case stopped:
		err = w.params.Queue.ReleaseJob(ctx, j, w.now())
	case errors.Is(cause, errWaits):
		j.Failures, j.Error = 0, ""
		err = w.params.Queue.ReleaseJob(ctx, j, w.now().Add(w.waitOf(j)))
	default:
		err = w.failed(ctx, j, cause)
	}
	if err != nil {
		w.params.Log.Warn("a privacy job was left as it is; it will be claimed again", "job", j.ID, "error", err)
	}
	return err
}

// waitOf is how soon somebody looks again at a job that waits for others: the
// longer it waits, the less often.
func (w *Worker) waitOf(j *Job) time.Duration {
	return min(max(firstWait, w.now().Sub(j.RecordedAt)/10), LongestWait)
}

// failed has a step done again later, or ends an export.
func (w *Worker) failed(ctx context.Context, j *Job, cause error) error {
	j.Failures++
	j.Error = shorten(cause.Error())
	w.params.Log.Warn("a step of a privacy job has failed", "job", j.ID, "phase", j.Phase, "failures", j.Failures, "error", cause)
	if j.Kind == Export && j.Failures >= maxExportFailures {
		if err := w.params.Archives.remove(j.ID); err != nil {
			return err
		}
		_, err := w.finish(ctx, j, Failed)
		return err
	}
	wait := LongestWait
	if j.Failures < 8 {
		wait = min(wait, firstWait<<(j.Failures-1))
	}
	return w.params.Queue.ReleaseJob(ctx, j, w.now().Add(wait))
}

// advance notes which step is next, or how far the present one is. It returns errLost if the job is not this
// worker's any more.
func (w *Worker) advance(ctx context.Context, j *Job, next Phase) error {
	if j.Phase != next {
		j.Failures, j.Error = 0, ""
	}
	j.Phase, j.Progress = next, max(j.Progress, progress[next])
	held, err := w.params.Queue.AdvanceJob(ctx, j)
	if err == nil && !held {
		err = errLost
	}
	return err
}

// finish ends a job, with an entry that says how.
func (w *Worker) finish(ctx context.Context, j *Job, status Status) (bool, error) {
	j.Status, j.FinishedAt = status, w.now()
	if status == Succeeded {
		j.Phase, j.Progress, j.Failures, j.Error = PhaseDone, progress[PhaseDone], 0, ""
	}
	entry, err := auditlog.Source{Clock: w.now, Random: w.params.Random}.New(auditlog.Entry{
		OrganizationID: j.Place.OrganizationID, ProjectID: j.Place.ProjectID, Action: auditlog.PrivacyJobFinished,
		Object:  auditlog.Object{Kind: auditlog.ObjectPrivacyJob, ID: j.ID},
		Details: map[string]string{"kind": string(j.Kind), "status": string(status)},
	})
	if err != nil {
		return false, err
	}
	return w.params.Queue.FinishJob(ctx, j, entry)
}

func (w *Worker) now() time.Time { return w.params.Clock().UTC().Truncate(time.Microsecond) }

func shorten(text string) string {
	if runes := []rune(text); len(runes) > errorLimit {
		return string(runes[:errorLimit])
	}
	return text
}
