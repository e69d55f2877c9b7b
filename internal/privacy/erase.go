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
	list, _, err := w.params.Queue.ArchivesOf(ctx, j.Place, j.Person, w.now())
	if err != nil {
		return err
	}
	return w.forget(ctx, list)
}

// record writes the erase record. If it is not known afterwards that it was
// written, it is written again: a second one erases what came in between, which
// was sent while the job ran.
func (w *Worker) record(ctx context.Context, j *Job) error {
	crash.Point("privacy.begun")
	position, err := w.params.Intake.Erase(ctx, j.Place.Number, j.Person)
	if err != nil {
		return err
	}
	crash.Point("privacy.recorded")
	at, err := w.afterAll(ctx, j)
	if err != nil {
		return err
	}
	j.Position, j.RecordedAt = position, at
	return nil
}

// afterAll returns a time after that of everything of the person that is stored
// now outside of the events, which have an order: what was there when the record
// was written is to be before it, also if the clock that stamped it was ahead
// and has been set back, or is another machine's.
func (w *Worker) afterAll(ctx context.Context, j *Job) (time.Time, error) {
	newest, err := w.params.Replays.Newest(ctx, j.Place.ProjectID)
	if err != nil {
		return time.Time{}, err
	}
	if j.Person.UserID != "" {
		other, err := w.params.Customers.Newest(ctx, j.Place.ProjectID, j.Person.UserID)
		if err != nil {
			return time.Time{}, err
		}
		newest = later(newest, other)
	}
	return later(w.now(), newest.Add(time.Microsecond)), nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// awaitErased waits until the event store has applied the record, and writes it
// again if it was lost.
func (w *Worker) awaitErased(ctx context.Context, j *Job) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		state, err := w.erasure(ctx, j)
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

// erasure says what became of the record. If a repair could not bring back what
// was behind a position, intake gives it to others, and nobody waits for them.
func (w *Worker) erasure(ctx context.Context, j *Job) (Erasure, error) {
	state, err := w.params.Events.Erased(ctx, j.Place.Number, j.Person, j.Position)
	if decided, _ := w.params.Intake.Decided(); err == nil && state == ErasureWaiting && j.Position > decided {
		state = ErasureMissing
	}
	return state, err
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

// eraseReplays deletes the recordings, and what others have of the person. Who
// they are only what applied the record knew, and the recordings, which are asked
// before they go; it is forgotten at last.
func (w *Worker) eraseReplays(ctx context.Context, j *Job) error {
	others, err := w.params.Replays.Companions(ctx, j.Place.ProjectID, j.Person, j.RecordedAt)
	if err != nil {
		return err
	}
	if err := w.params.Events.KeepTaken(ctx, j.Place.Number, j.Person, j.Position, others); err != nil {
		return err
	}
	if err := w.params.Replays.DeletePerson(ctx, j.Place.ProjectID, j.Person, j.RecordedAt); err != nil {
		return err
	}
	taken, err := w.params.Events.Taken(ctx, j.Place.Number, j.Person, j.Position)
	if err != nil {
		return err
	}
	var spans []Span
	for _, t := range taken {
		if t.Person.AnonID != "" && t.From < t.To {
			spans = append(spans, Span{AnonID: t.Person.AnonID, From: t.From, To: t.To})
		}
	}
	if err := w.params.Replays.DeleteSpans(ctx, j.Place.ProjectID, spans, j.RecordedAt); err != nil {
		return err
	}
	if err := w.params.Replays.Purge(ctx); err != nil {
		return err
	}
	crash.Point("privacy.replays")
	if err := w.eraseShared(ctx, j, taken); err != nil {
		return err
	}
	return w.params.Events.ForgetTaken(ctx, j.Place.Number, j.Person, j.Position)
}

// eraseShared removes the archives about others that the person's data is in,
// and what is left of those that were not finished. Those that another server
// is writing now may have begun before the deletion: they are awaited. What
// begins later has nothing of the person any more.
func (w *Worker) eraseShared(ctx context.Context, j *Job, taken []Taken) error {
	waits, done := false, map[Person]bool{}
	for _, t := range taken {
		if done[t.Person] {
			continue
		}
		done[t.Person] = true
		list, writing, err := w.params.Queue.ArchivesOf(ctx, j.Place, t.Person, w.now())
		if err != nil {
			return err
		}
		if err := w.forget(ctx, list); err != nil {
			return err
		}
		waits = waits || writing
	}
	if waits {
		return errWaits
	}
	return w.params.Archives.sweep(ctx, w.params.Queue.HasArchive)
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
