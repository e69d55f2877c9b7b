package privacy

import (
	"context"
	"time"

	"github.com/actionpulse/actionpulse/internal/crash"
)

const (
	// lookInterval is how often somebody looks whether the event store has come
	// to the record.
	lookInterval = 20 * time.Millisecond
	// redactSize is how many rows of each kind one transaction changes.
	redactSize = 200
)

// erase does the steps of a deletion from the one that is next.
func (w *Worker) erase(ctx context.Context, j *Job) error {
	steps := map[Phase]struct {
		do   func(context.Context, *Job) error
		next Phase
	}{
		PhaseExports:   {w.eraseExports, PhaseRecord},
		PhaseRecord:    {w.record, PhaseEvents},
		PhaseEvents:    {w.awaitErased, PhaseReplays},
		PhaseReplays:   {w.eraseReplays, PhaseCustomers},
		PhaseCustomers: {w.eraseCustomer, PhaseFiles},
		PhaseFiles:     {w.rewrite, PhaseDone},
	}
	for {
		step := steps[j.Phase]
		if err := step.do(ctx, j); err != nil {
			return err
		}
		if step.next == PhaseDone {
			return w.erased(ctx, j)
		}
		if err := w.advance(ctx, j, step.next); err != nil {
			return err
		}
	}
}

// erased ends a deletion.
func (w *Worker) erased(ctx context.Context, j *Job) error {
	j.ErasedFromLogAt = w.now()
	held, err := w.finish(ctx, j, Succeeded)
	if err == nil && !held {
		err = errLost
	}
	if err == nil {
		w.params.Log.Info("a person's data was erased", "job", j.ID)
	}
	return err
}

// eraseExports removes the archives about the person.
func (w *Worker) eraseExports(ctx context.Context, j *Job) error {
	list, err := w.params.Queue.ArchivesOf(ctx, j.Place, j.Person)
	if err != nil {
		return err
	}
	return w.forget(ctx, list)
}

// record writes the erase record. Before it is applied somebody must have seen
// which anonymous ids were the user: then nobody knows any more. If it is not
// known afterwards that it was written, it is written again: a second one
// erases what came in between, which was sent while the job ran.
func (w *Worker) record(ctx context.Context, j *Job) error {
	crash.Point("privacy.begun")
	if j.Person.UserID != "" {
		spans, err := w.spans(ctx, j)
		if err != nil {
			return err
		}
		if err := w.params.Replays.DeleteSpans(ctx, j.Place.ProjectID, spans); err != nil {
			return err
		}
	}
	position, err := w.params.Intake.Erase(ctx, j.Place.Number, j.Person)
	if err != nil {
		return err
	}
	crash.Point("privacy.recorded")
	j.Position, j.RecordedAt = position, w.now()
	return nil
}

// spans returns when which anonymous ids were the user, as of now.
func (w *Worker) spans(ctx context.Context, j *Job) ([]Span, error) {
	position, _ := w.params.Intake.Decided()
	if err := w.await(ctx, position); err != nil {
		return nil, err
	}
	return w.params.Events.Spans(ctx, j.Place.Number, j.Person.UserID)
}

// awaitErased waits until the event store has applied the record, and writes it
// again if it was lost.
func (w *Worker) awaitErased(ctx context.Context, j *Job) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		state, err := w.params.Events.Erased(ctx, j.Place.Number, j.Person, j.Position)
		switch {
		case err != nil:
			return err
		case state == ErasureApplied:
			crash.Point("privacy.stored")
			return nil
		case state == ErasureMissing:
			w.params.Log.Warn("an erase record was lost and is written again", "job", j.ID, "position", j.Position)
			if err := w.record(ctx, j); err != nil {
				return err
			}
			if err := w.advance(ctx, j, PhaseEvents); err != nil {
				return err
			}
		}
		if err := pause(ctx, ticker); err != nil {
			return err
		}
	}
}

// await waits until the event store has come to a position.
func (w *Worker) await(ctx context.Context, position uint64) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		stored, err := w.params.Events.Stored(ctx)
		if err != nil || stored >= position {
			return err
		}
		if err := pause(ctx, ticker); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, ticker *time.Ticker) error {
	select {
	case <-ticker.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *Worker) eraseReplays(ctx context.Context, j *Job) error {
	if err := w.params.Replays.DeletePerson(ctx, j.Place.ProjectID, j.Person, j.RecordedAt); err != nil {
		return err
	}
	crash.Point("privacy.replays")
	return nil
}

// eraseCustomer redacts in small groups. It is done again until the executions
// that were made before the record have ended: they need what they were given.
func (w *Worker) eraseCustomer(ctx context.Context, j *Job) error {
	if j.Person.UserID == "" {
		return nil
	}
	p := RedactParams{ProjectID: j.Place.ProjectID, Customer: j.Person.UserID, Before: j.RecordedAt, Limit: redactSize}
	for {
		done, err := w.params.Customers.RedactCustomer(ctx, p)
		if err != nil {
			return err
		}
		if done.Changed > 0 {
			continue
		}
		if done.Running > 0 {
			return errWaits
		}
		break
	}
	if err := w.params.Customers.RedactMessages(ctx, p); err != nil {
		return err
	}
	crash.Point("privacy.customers")
	return nil
}

// rewrite has nothing left in the files of what was erased.
func (w *Worker) rewrite(ctx context.Context, j *Job) error {
	if err := w.params.Events.Rewrite(ctx); err != nil {
		return err
	}
	crash.Point("privacy.rewritten")
	if err := w.params.Intake.Purge(ctx, j.Position); err != nil {
		return err
	}
	if err := w.params.Customers.Scrub(ctx); err != nil {
		return err
	}
	crash.Point("privacy.purged")
	return nil
}
