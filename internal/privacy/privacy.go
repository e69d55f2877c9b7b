// Package privacy owns jobs about the data of one person of a project: an
// export writes everything that is known of the person into a file, a deletion
// erases it. It decides in which order that is done and what may be done
// meanwhile; it never knows where events, replays and customers are kept.
//
//	queued ──▶ running ──▶ succeeded | failed
//	  ▲  │        │
//	  │  └────────┴──────▶ cancelled, unless the erase record is written
//	  └───────────┘ its owner has stopped, or its step is to be done again
//
// Invariants:
//   - of a person, by the id that was given, at most one job is not finished;
//   - each step of a job may be done again, and is, when nobody knows whether
//     it was done: a job ends, however often the process is killed;
//   - every write of a run names the lease it was claimed with, and is refused
//     once another has claimed the job or it was cancelled;
//   - a deletion is a record in order with the events: what was acknowledged
//     before it is erased, what comes after it is new;
//   - once its record is written a deletion is neither cancelled nor given up,
//     unless the server that has it is lost, and an admin says so at another;
//   - intake and keyed work never wait for a job.
package privacy

import (
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Kind is what a job does.
type Kind string

// The kinds.
const (
	Export Kind = "export"
	Delete Kind = "delete"
)

// Person names whom a job is about: exactly one member is set. A user is all
// that was sent with the user's id, and without any what belongs to the user by
// links; an anonymous id is all that was sent with it.
type Person struct{ UserID, AnonID string }

// Status is the state of a job.
type Status string

// The states. From the last three there is no way.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Phase is the step of a job that is done next.
type Phase string

// The steps of a deletion in their order, then that of an export.
const (
	// PhaseExports removes what was exported about the person.
	PhaseExports Phase = "exports"
	// PhaseRecord writes the erase record in order with the events. From here
	// on there is no way back.
	PhaseRecord Phase = "record"
	// PhaseEvents waits until the event store has come to the record.
	PhaseEvents Phase = "events"
	// PhaseReplays deletes the session replays.
	PhaseReplays Phase = "replays"
	// PhaseCustomers redacts what is kept of the customer and of executions.
	PhaseCustomers Phase = "customers"
	// PhaseFiles has the stores write their files anew, without what was erased.
	PhaseFiles Phase = "files"

	// PhaseArchive writes the archive.
	PhaseArchive Phase = "archive"

	// PhaseDone is after the last step of both.
	PhaseDone Phase = "done"
)

// progress is how far a job is when a step begins, in thousandths.
var progress = map[Phase]int64{
	PhaseExports: 0, PhaseRecord: 50, PhaseEvents: 100, PhaseReplays: 400, PhaseCustomers: 550, PhaseFiles: 700,
	PhaseArchive: 0, PhaseDone: 1000,
}

// Job is the work on one person's data.
type Job struct {
	// Number orders jobs; given by the store.
	Number int64
	ID     string
	// Place is the project.
	Place  Place
	Kind   Kind
	Person Person
	Status Status
	Phase  Phase
	// Progress is in thousandths and never falls.
	Progress int64
	// Server is the one in whose data folder it is done.
	Server [16]byte
	// Lease is the latest: it is in force while the job runs.
	Lease Lease
	// Failures of the step that is next, in a row, and the reason of the last.
	Failures int64
	Error    string
	// Position is where the erase record is, 0 until it is written; RecordedAt
	// is when that was, and later than the time of anything that was stored by
	// then: clocks may have been set back.
	Position   uint64
	RecordedAt time.Time
	// ErasedFromLogAt is when the last file was written anew without what was
	// erased.
	ErasedFromLogAt time.Time
	// ArchiveBytes is the length of a finished export, which is kept until
	// ArchiveUntil; zero once it is gone.
	ArchiveBytes int64
	ArchiveUntil time.Time
	CreatedAt    time.Time
	// StartedAt and FinishedAt are zero before that.
	StartedAt, FinishedAt time.Time
}

// Place is a project, as jobs, events and the audit log name it.
type Place struct {
	OrganizationID, ProjectID string
	// Number is that of its events.
	Number uint32
}

// Lease is the right to do a job: of one process, for one claim.
type Lease struct {
	JobID string
	Owner [16]byte
	// Epoch moves on with each claim.
	Epoch int64
}

// retryActive is how long somebody is asked to wait for a job of another.
const retryActive = 5 * time.Second

// Active is the refusal of a change that an unfinished job stands in the way
// of: privacy_job_active.
func Active(jobID string) *fault.Error {
	return fault.New(api.CodePrivacyJobActive, "a privacy job is being done for this person or project; it ends by itself").
		With("job_id", jobID).After(retryActive)
}

// maxPerson is the longest id of a person, in characters, as intake has it.
const maxPerson = 200

// validate refuses a request for a job with validation_failed.
func validate(kind Kind, p Person) error {
	if kind != Export && kind != Delete {
		return fault.Field("kind", "kind is export or delete")
	}
	if (p.UserID == "") == (p.AnonID == "") {
		return fault.Field("user_id", "send either user_id or anon_id")
	}
	if len([]rune(p.UserID+p.AnonID)) > maxPerson {
		return fault.Field("user_id", "the id of a person has at most %d characters", maxPerson)
	}
	return nil
}
