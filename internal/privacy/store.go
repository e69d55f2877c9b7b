package privacy

import (
	"context"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
)

// Store keeps jobs.
type Store interface {
	// CreateJob stores a job and the entry about it, unless one about the
	// person is not finished: then it returns the id of that one.
	CreateJob(ctx context.Context, j Job, entry auditlog.Entry) (active string, err error)
	// FindJob returns a project's job and whether there is one.
	FindJob(ctx context.Context, at Place, jobID string) (Job, bool, error)
	// ListJobs returns at most limit jobs of a project with ids below before,
	// or any if that is empty, the latest first.
	ListJobs(ctx context.Context, at Place, before string, limit int) ([]Job, error)
	// CancelJob cancels a job that has not come to the point of no return,
	// stores the entry, and says whether it has.
	CancelJob(ctx context.Context, at Place, jobID string, entry auditlog.Entry) (bool, error)
	// AbandonJob ends a deletion, whatever its step, as failed if another server
	// has it that was not heard of for an hour, where several share the store. It
	// stores the entry, and says whether it has. What the lost server then writes
	// of the job is refused.
	AbandonJob(ctx context.Context, p AbandonParams) (bool, error)
	// CreateEntry stores an entry of the audit log by itself.
	CreateEntry(ctx context.Context, e auditlog.Entry) error
}

// AbandonParams says which job is given up.
type AbandonParams struct {
	Place Place
	JobID string
	// Server is the one that is asked: its own jobs it does.
	Server [16]byte
	// Reason is shown with the job.
	Reason string
	Entry  auditlog.Entry
}

// Queue is what a worker takes jobs from.
type Queue interface {
	// VoidJobs queues what owners do that are gone: all but this one on a store
	// that only one process uses; none elsewhere, where leases end.
	VoidJobs(ctx context.Context, owner [16]byte) error
	// ClaimJob claims the job that waits longest, one whose lease has ended, or
	// one that is the owner's already, and says whether there was one. Who asks
	// does no job. What others are claiming is passed over.
	ClaimJob(ctx context.Context, p ClaimParams) (Job, bool, error)
	// RenewJob renews a lease and says whether it is still in force.
	RenewJob(ctx context.Context, l Lease, leaseFor time.Duration) (bool, error)
	// AdvanceJob stores which step of a job is next, with its position and how
	// far it is; it returns false if the lease is not in force any more.
	AdvanceJob(ctx context.Context, j *Job) (bool, error)
	// FinishJob stores the end of a job with the entry about it; it returns
	// false if the lease is not in force any more.
	FinishJob(ctx context.Context, j *Job, entry auditlog.Entry) (bool, error)
	// ReleaseJob queues a job again, to be claimed at a time or later, with its
	// failures. It does nothing if the lease is not in force any more.
	ReleaseJob(ctx context.Context, j *Job, at time.Time) error

	// ExpiredArchives are the ids of at most limit jobs whose archives have been
	// kept for long enough.
	ExpiredArchives(ctx context.Context, at time.Time, limit int) ([]string, error)
	// ArchivesOf are the ids of the jobs whose archives are about a person, and
	// whether somebody is writing one now.
	ArchivesOf(ctx context.Context, at Place, p Person, now time.Time) (list []string, writing bool, err error)
	// ForgetArchive notes that a job's archive is gone.
	ForgetArchive(ctx context.Context, jobID string) error
	// HasArchive says whether a job has an archive or is writing one.
	HasArchive(ctx context.Context, jobID string) (bool, error)
}

// ClaimParams asks for a job.
type ClaimParams struct {
	// Server is the one that asks. Where several processes share a store, it
	// gets only its own.
	Server, Owner [16]byte
	// LeaseFor is how long; 0 where leases end with their process.
	LeaseFor time.Duration
	// Now is the time by the asking server's clock. What is put off until later
	// than LongestWait after it was put off by a clock that has been set back.
	Now time.Time
}

// LongestWait is the longest that a job is put off.
const LongestWait = time.Minute

// Intake brings events into their order.
type Intake interface {
	// Erase writes the erase record of a person, and returns where it is, once
	// it is on disk.
	Erase(ctx context.Context, project uint32, p Person) (position uint64, err error)
	// Decided returns a position and a time in milliseconds since 1970: all
	// that was acknowledged before that time is at that position or before it.
	Decided() (position uint64, at int64)
	// Purge leaves nothing in the files of records up to a position, to which the
	// event store must have come.
	Purge(ctx context.Context, position uint64) error
}

// Events keeps events, links and traits.
type Events interface {
	// Stored returns the position up to which everything is stored.
	Stored(ctx context.Context) (uint64, error)
	// Erased says what became of the erase record of a person at a position.
	Erased(ctx context.Context, project uint32, p Person, position uint64) (Erasure, error)
	// Spans returns when which anonymous ids were a user.
	Spans(ctx context.Context, project uint32, userID string) ([]Span, error)
	// Taken returns whose data the erase records of a person, up to a position,
	// have taken too.
	Taken(ctx context.Context, project uint32, p Person, position uint64) ([]Taken, error)
	// KeepTaken has Taken return others, too, of the erase record at a position.
	KeepTaken(ctx context.Context, project uint32, p Person, position uint64, others []Person) error
	// ForgetTaken forgets what Taken returns.
	ForgetTaken(ctx context.Context, project uint32, p Person, position uint64) error
	// ExportPerson emits what is stored of a person.
	ExportPerson(ctx context.Context, project uint32, p Person, emit Emit) error
	// Rewrite leaves nothing in the files of what was erased.
	Rewrite(ctx context.Context) error
}

// Erasure is what became of an erase record.
type Erasure int

// What may have become of it.
const (
	// ErasureWaiting: the event store has not come to it.
	ErasureWaiting Erasure = iota
	// ErasureApplied: what was before it is erased.
	ErasureApplied
	// ErasureMissing: it was lost, with other records that a repair could not
	// bring back, or set aside.
	ErasureMissing
)

// Span is a time in which an anonymous id was a user: from From to To, which is
// not included, both in milliseconds since 1970.
type Span struct {
	AnonID   string
	From, To int64
}

// Taken is somebody who had data in common with a person who was erased: an
// anonymous id that was the user from From to To, in milliseconds since 1970, or
// with an empty span one of whom an event or a link named both, or another user
// of such an id.
type Taken struct {
	Person   Person
	From, To int64
}

// Replays keeps session replays. A chunk belongs to the user that it was sent
// with, and without one to its anonymous id.
type Replays interface {
	// Newest returns the latest time at which a chunk of a project was received,
	// by the clock of whoever received it; zero if there is none.
	Newest(ctx context.Context, projectID string) (time.Time, error)
	// Companions returns whom else the chunks of a person name that were received
	// before a time.
	Companions(ctx context.Context, projectID string, p Person, before time.Time) ([]Person, error)
	// DeletePerson deletes the chunks of a person that were received before a
	// time.
	DeletePerson(ctx context.Context, projectID string, p Person, before time.Time) error
	// DeleteSpans deletes the chunks of anonymous ids, sent without a user, that
	// were received within the spans and before a time.
	DeleteSpans(ctx context.Context, projectID string, spans []Span, before time.Time) error
	// Purge leaves nothing in the blob store of chunks that were deleted.
	Purge(ctx context.Context) error
	// ExportPerson emits the sessions of a person and their chunks, and of
	// anonymous ids those that were received within the spans. It says how many
	// chunks it has emitted without their events: what is lost or damaged does not
	// keep the rest. A store that cannot be reached is an error.
	ExportPerson(ctx context.Context, projectID string, p Person, spans []Span, emit Emit) (unreadable int64, err error)
}

// Customers keeps customers with their credits and executions.
type Customers interface {
	// Newest returns the latest time with which something was stored that is
	// redacted by its time: of a customer, or a project's webhook message. It is
	// zero if there is nothing.
	Newest(ctx context.Context, projectID, customer string) (time.Time, error)
	// RedactCustomer redacts at most limit rows of a customer and of what was
	// written before a time, and says what it did.
	RedactCustomer(ctx context.Context, p RedactParams) (Redaction, error)
	// RedactMessages redacts the webhook messages about a customer that were
	// written before a time and that nobody waits for.
	RedactMessages(ctx context.Context, p RedactParams) error
	// ExportCustomer emits what is known of a customer, if there is one.
	ExportCustomer(ctx context.Context, projectID, customer string, emit Emit) error
	// Scrub leaves nothing in the database's files of what was redacted.
	Scrub(ctx context.Context) error
}

// RedactParams says what to redact.
type RedactParams struct {
	ProjectID, Customer string
	// Before is when the erase record was written, see Job.RecordedAt: what began
	// later is new.
	Before time.Time
	Limit  int
}

// Redaction says what was done.
type Redaction struct {
	// Changed counts the rows that are redacted now and were not before.
	Changed int
	// Running counts executions that are to be redacted once they have ended.
	Running int
}

// Emit takes one object of an export: its type and what is written beside that.
type Emit func(kind string, object any) error
