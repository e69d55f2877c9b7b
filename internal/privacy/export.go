package privacy

import (
	"context"
	"errors"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/crash"
)

// export writes an archive from its beginning: what an earlier run has written
// is of another time.
func (w *Worker) export(ctx context.Context, j *Job) (err error) {
	if err := w.params.Guard(); err != nil {
		return err
	}
	position, at := w.params.Intake.Decided()
	if err := w.await(ctx, position); err != nil {
		return err
	}
	out, err := w.params.Archives.create(j.ID, w.params.Guard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	if err := w.write(ctx, j, out, time.UnixMilli(at)); err != nil {
		return err
	}
	if j.ArchiveBytes, err = out.finish(); err != nil {
		return err
	}
	crash.Point("privacy.archived")
	j.ArchiveUntil = w.now().Add(w.params.KeepArchives)
	held, err := w.finish(ctx, j, Succeeded)
	if err == nil && !held {
		err = errLost
	}
	return err
}

// write writes the lines: first what it is, last how much there is of each
// type, so that a reader knows that it is whole.
func (w *Worker) write(ctx context.Context, j *Job, out *archive, asOf time.Time) error {
	head := api.PrivacyExport{
		JobID: j.ID, ProjectID: j.Place.ProjectID, UserID: api.OptionalText(j.Person.UserID), AnonID: api.OptionalText(j.Person.AnonID),
		AsOf: api.TimeText(asOf),
	}
	if err := out.emit("export", head); err != nil {
		return err
	}
	var unreadable int64
	parts := []struct {
		write func() error
		done  int64
	}{
		{func() error { return w.params.Events.ExportPerson(ctx, j.Place.Number, j.Person, out.emit) }, 500},
		{func() (err error) {
			unreadable, err = w.exportReplays(ctx, j, out.emit)
			return err
		}, 850},
		{func() error {
			if j.Person.UserID == "" {
				return nil
			}
			return w.params.Customers.ExportCustomer(ctx, j.Place.ProjectID, j.Person.UserID, out.emit)
		}, 950},
	}
	for _, part := range parts {
		if err := part.write(); err != nil {
			return err
		}
		j.Progress = max(j.Progress, part.done)
		if err := w.advance(ctx, j, PhaseArchive); err != nil {
			return err
		}
	}
	delete(out.counts, "export")
	return out.emit("end", exportEnd{out.counts, unreadable})
}

// exportEnd is the last line.
type exportEnd struct {
	Counts map[string]int64 `json:"counts"`
	// Unreadable is how many of them are chunks without their events.
	Unreadable int64 `json:"unreadable,omitempty"`
}

func (w *Worker) exportReplays(ctx context.Context, j *Job, emit Emit) (unreadable int64, err error) {
	var spans []Span
	if j.Person.UserID != "" {
		if spans, err = w.params.Events.Spans(ctx, j.Place.Number, j.Person.UserID); err != nil {
			return 0, err
		}
	}
	return w.params.Replays.ExportPerson(ctx, j.Place.ProjectID, j.Person, spans, emit)
}
