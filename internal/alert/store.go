package alert

import (
	"context"
	"errors"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
)

// ErrStale is returned when an alert is no longer as it was when its period
// was looked at: somebody else has judged the period, or has changed what is
// watched. Nothing was written.
var ErrStale = errors.New("the alert has moved on")

// Store keeps alerts.
type Store interface {
	// Create stores an alert and the entry about it, unless the project has
	// limit alerts: then it returns false.
	Create(ctx context.Context, a Alert, limit int, entry auditlog.Entry) (bool, error)
	// Find returns a project's alert and whether there is one.
	Find(ctx context.Context, projectID, alertID string) (Alert, bool, error)
	// List returns at most limit alerts of a project with ids above after, in
	// order of id.
	List(ctx context.Context, projectID, after string, limit int) ([]Alert, error)
	// Change makes a step with an alert that nobody else changes meanwhile,
	// and writes what has come of it, all in one transaction. It reports
	// whether there is such an alert. Errors: ErrStale, what the step returns,
	// the fault unavailable.
	Change(ctx context.Context, p ChangeParams) (Alert, bool, error)
	// History returns entries, the latest first.
	History(ctx context.Context, p HistoryParams) ([]Entry, error)
}

// ChangeParams is a step with an alert.
type ChangeParams struct {
	ProjectID, AlertID string
	// At, NewID and UserID are those of the step.
	At     time.Time
	NewID  func() (string, error)
	UserID string
	// Near is the period whose release markers the step shows; if it is zero,
	// those until At.
	Near Period
	// Expect says what the alert must be for the step to be made; nil if that
	// does not matter.
	Expect *Expectation
	// Evaluation is written first, if it is not nil: whoever writes it has
	// judged its period.
	Evaluation *Evaluation
	Step       func(*Step) error
	// Audit tells of a change by a person; nil if it is none.
	Audit *auditlog.Entry
}

// Expectation is what an alert was when its next period was looked at.
type Expectation struct {
	Revision int64
	Next     Period
}

// HistoryParams says which entries to list.
type HistoryParams struct {
	AlertID string
	// Before is the number of the last entry of the page before; 0 for the
	// first page.
	Before int64
	Limit  int
}

// Queue is what evaluators take due alerts from.
type Queue interface {
	// Now is the time by the clock that all processes share: the database's,
	// where several share one.
	Now(ctx context.Context) (time.Time, error)
	// Due are alerts with a period that is to be judged now. Those of one
	// project after the first come after the first of all others.
	Due(ctx context.Context, p DueParams) ([]Due, error)
	// Values are those of periods that were judged under a revision, and were
	// known, by their start.
	Values(ctx context.Context, p ValuesParams) (map[time.Time]float64, error)
	// Sweep deletes at most limit rows of each kind that are no longer needed,
	// and says how many.
	Sweep(ctx context.Context, p SweepParams) (int, error)
}

// DueParams says what is due.
type DueParams struct {
	Now time.Time
	// Stored is when the period of a trend must have ended, Passed that of
	// anything else.
	Stored, Passed time.Time
	Limit          int
	// Offset is how many of the first are left out.
	Offset int
}

// Due names an alert with a period to be judged.
type Due struct {
	ID, ProjectID string
	// Project is the number that events know the project by.
	Project   uint32
	CreatedAt time.Time // the project's
}

// ValuesParams says which values to read.
type ValuesParams struct {
	AlertID  string
	Revision int64
	// From and To are a half-open range of the periods' starts.
	From, To time.Time
}

// SweepParams says what is no longer needed.
type SweepParams struct {
	// Evaluations and History are when what is deleted was written at the
	// latest.
	Evaluations, History time.Time
	Limit                int
}
