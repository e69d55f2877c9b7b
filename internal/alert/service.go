package alert

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// Params configures a [Service]; every member must be set.
type Params struct {
	Store Store
	// Reader reads the metrics of previews.
	Reader *Reader
	Clock  func() time.Time
	// Random is where ids come from: crypto/rand.Reader.
	Random io.Reader
	// Wake tells the evaluator, and Told the sender of webhooks, that there may
	// be something to do.
	Wake, Told func()
}

// Service manages alerts.
type Service struct{ params Params }

// NewService returns a Service.
func NewService(p Params) *Service { return &Service{params: p} }

// Place names an alert and who changes it.
type Place struct {
	Actor                     auditlog.Actor
	OrganizationID, ProjectID string
	// AlertID is empty if there is none yet.
	AlertID string
}

// Create makes an alert. It begins with the last period that is over. Faults:
// validation_failed; conflict, when the project has too many; unavailable.
func (s *Service) Create(ctx context.Context, at Place, d Definition) (Alert, error) {
	if err := d.Validate(); err != nil {
		return Alert{}, err
	}
	now := s.now()
	var err error
	if at.AlertID, err = s.newID(); err != nil {
		return Alert{}, err
	}
	a := Alert{
		ID: at.AlertID, ProjectID: at.ProjectID, Definition: d, Revision: 1, Next: d.first(now, time.Time{}),
		Status: Status{State: OK}, CreatedAt: now, UpdatedAt: now,
	}
	entry, err := s.entry(at, auditlog.AlertCreated, map[string]string{"name": d.Name})
	if err != nil {
		return Alert{}, err
	}
	made, err := s.params.Store.Create(ctx, a, MaxAlerts, entry)
	if err != nil {
		return Alert{}, fmt.Errorf("make an alert: %w", err)
	}
	if !made {
		return Alert{}, fault.New(api.CodeConflict, "a project has at most %d alerts", MaxAlerts)
	}
	s.params.Wake()
	return a, nil
}

// Get returns an alert. Fault: not_found.
func (s *Service) Get(ctx context.Context, projectID, alertID string) (Alert, error) {
	if id.Valid(alertID) {
		a, found, err := s.params.Store.Find(ctx, projectID, alertID)
		if err != nil {
			return Alert{}, fmt.Errorf("find an alert: %w", err)
		}
		if found {
			return a, nil
		}
	}
	return Alert{}, noAlert()
}

// List returns at most limit alerts with ids above after, in order of id.
func (s *Service) List(ctx context.Context, projectID, after string, limit int) ([]Alert, error) {
	all, err := s.params.Store.List(ctx, projectID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	return all, nil
}

// History returns what has become of a project's alert, the latest first.
// Fault: not_found.
func (s *Service) History(ctx context.Context, projectID string, p HistoryParams) ([]Entry, error) {
	if _, err := s.Get(ctx, projectID, p.AlertID); err != nil {
		return nil, err
	}
	all, err := s.params.Store.History(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list the history of an alert: %w", err)
	}
	return all, nil
}

// Update lets edit alter what is watched. If it is watched in another way than
// before, the alert begins anew, with a period that was not judged yet, and is
// resolved if it fired. Faults: validation_failed, not_found, unavailable, and
// what edit refuses with.
func (s *Service) Update(ctx context.Context, at Place, edit func(*Definition) error) (Alert, error) {
	a, err := s.change(ctx, at, deed{action: auditlog.AlertUpdated, step: func(step *Step) error {
		d := step.Alert.Definition
		if err := edit(&d); err != nil {
			return err
		}
		if err := d.Validate(); err != nil {
			return err
		}
		return step.Redefine(d)
	}})
	if err == nil {
		s.params.Wake()
	}
	return a, err
}

// Mute mutes an alert until a time, or for ever if that is zero. Faults:
// validation_failed, when the time has passed; not_found; unavailable.
func (s *Service) Mute(ctx context.Context, at Place, until time.Time) (Alert, error) {
	until = until.UTC().Truncate(time.Microsecond)
	details := map[string]string{}
	if !until.IsZero() {
		details["until"] = api.TimeText(until)
	}
	return s.change(ctx, at, deed{action: auditlog.AlertMuted, details: details, step: func(step *Step) error {
		if !until.IsZero() && !until.After(step.At) {
			return fault.Field("until", "until must be in the future")
		}
		return step.Mute(until)
	}})
}

// Unmute ends a mute. Faults: not_found, unavailable.
func (s *Service) Unmute(ctx context.Context, at Place) (Alert, error) {
	return s.change(ctx, at, deed{action: auditlog.AlertUnmuted, step: (*Step).Unmute})
}

// Resolve ends the firing of an alert by hand; one that does not fire stays as
// it is. It fires again as soon as `for` further periods in a row are bad.
// Faults: not_found, unavailable.
func (s *Service) Resolve(ctx context.Context, at Place) (Alert, error) {
	return s.change(ctx, at, deed{action: auditlog.AlertResolved, step: func(step *Step) error { return step.Resolve(ByHand) }})
}

// Delete deletes an alert with its history; one that fires is resolved. Faults:
// not_found, unavailable.
func (s *Service) Delete(ctx context.Context, at Place) error {
	_, err := s.change(ctx, at, deed{action: auditlog.AlertDeleted, step: func(step *Step) error {
		err := step.Resolve(Deleted)
		step.Alert.DeletedAt = step.At
		return err
	}})
	return err
}

// deed is what a person does to an alert.
type deed struct {
	action  auditlog.Action
	details map[string]string
	step    func(*Step) error
}

func (s *Service) change(ctx context.Context, at Place, d deed) (Alert, error) {
	if !id.Valid(at.AlertID) {
		return Alert{}, noAlert()
	}
	entry, err := s.entry(at, d.action, d.details)
	if err != nil {
		return Alert{}, err
	}
	told := false
	a, found, err := s.params.Store.Change(ctx, ChangeParams{
		ProjectID: at.ProjectID, AlertID: at.AlertID, At: entry.At, NewID: s.newID, UserID: at.Actor.UserID, Audit: &entry,
		Step: func(made *Step) error {
			made.Alert.UpdatedAt = made.At
			err := d.step(made)
			told = len(made.Messages) > 0
			return err
		},
	})
	if err != nil {
		return Alert{}, fmt.Errorf("change an alert: %w", err)
	}
	if !found {
		return Alert{}, noAlert()
	}
	if told {
		s.params.Told()
	}
	return a, nil
}

func (s *Service) entry(at Place, action auditlog.Action, details map[string]string) (auditlog.Entry, error) {
	return auditlog.Source{Clock: s.now, Random: s.params.Random}.New(auditlog.Entry{
		OrganizationID: at.OrganizationID, ProjectID: at.ProjectID, Actor: at.Actor, Action: action,
		Object: auditlog.Object{Kind: auditlog.ObjectAlert, ID: at.AlertID}, Details: details,
	})
}

func (s *Service) newID() (string, error) { return id.New(s.now(), s.params.Random) }

func (s *Service) now() time.Time { return s.params.Clock().UTC().Truncate(time.Microsecond) }

func noAlert() error { return fault.New(api.CodeNotFound, "there is no such alert") }
