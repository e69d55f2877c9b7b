// Package replay takes in session recordings, chunk by chunk, and gives them
// back: it judges who was first with a chunk, sums up what a chunk shows, and
// sees to it that what was deleted stays deleted. It never interprets a
// recording beyond that, and never changes a byte of one.
//
// Invariants:
//   - a chunk is known by project, session and number, for ever: a mark of it
//     outlives the chunk, and the unique index of marks is the judge of who was
//     first;
//   - nothing is acknowledged before the chunk's blob and its rows are on disk;
//   - a refusal means that nothing of the request was taken;
//   - a row of a chunk has its blob, and what has no row is deleted in the end:
//     see claim.go;
//   - all blobs are in one place, and who has another keeps none: see place.go.
package replay

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
)

// Limits of a chunk.
const (
	// MaxBody is the most that a request may hold, inflated, in bytes.
	MaxBody = 5 << 20
	// MaxChunk is the highest number of a chunk.
	MaxChunk = 1_000_000
	// maxIDRunes bounds the ids of sessions and persons, in characters.
	maxIDRunes = 200
)

// Source says who sent a chunk.
type Source struct {
	ProjectID, OrganizationID string
}

// Person names a person by one of the ids that a chunk was sent with. A chunk
// belongs to its user; without one to its anonymous id.
type Person struct {
	// UserID or AnonID is set.
	UserID, AnonID string
}

// Receipt is the verdict on a chunk.
type Receipt struct {
	// Duplicate says that there was a chunk of this number.
	Duplicate bool
	// Conflict says that its events were others; it stays as it is.
	Conflict bool
}

// ChunkRef names a chunk of a project.
type ChunkRef struct {
	ProjectID string
	// Session is the SHA-256 of the session's id.
	Session [sha256.Size]byte
	Chunk   int64
}

// SessionHash is how marks name a session: without its id.
func SessionHash(sessionID string) [sha256.Size]byte { return sha256.Sum256([]byte(sessionID)) }

// Mark is what is known for ever of a chunk that was received.
type Mark struct {
	// Digest is of the events, however they were spelt.
	Digest [sha256.Size]byte
	// Attempt is the attempt that was first.
	Attempt [16]byte
}

// Summary is what a chunk shows.
type Summary struct {
	// StartedAt and EndedAt are when its first and its last event happened.
	StartedAt, EndedAt time.Time
	Events             int64
	// Pages counts the pages that were come to, Errors what the page has logged
	// or tagged as an error.
	Pages, Errors, Clicks int64
}

// Entry is one attempt to be first with a chunk.
type Entry struct {
	ChunkRef
	Mark

	SessionID string
	Person    Person
	Summary   Summary
	// Blob is the name of its blob, used by no other attempt. Bytes are the
	// events as they were sent, StoredBytes as they are stored.
	Blob               string
	Bytes, StoredBytes int64
	ReceivedAt         time.Time
	// Outcome is filled in when the entry is committed.
	Outcome Outcome
}

// Outcome is what became of an entry.
type Outcome struct {
	// Lost says that the blob is being deleted, since the attempt took too
	// long: nothing was decided, and another attempt is needed.
	Lost bool
	// Receipt is the verdict, if it was not lost.
	Receipt
}

// Blobs keeps the bytes of chunks. The errors are described where
// blobstore.Store has these methods; what is not there is fs.ErrNotExist.
type Blobs interface {
	Put(ctx context.Context, name string, content []byte) error
	Get(ctx context.Context, name string) ([]byte, error)
	Delete(ctx context.Context, name string) error
}

// Store keeps marks, sessions, chunks, claims on blobs and where these are. Its methods return
// the fault unavailable as package sqldb describes it.
type Store interface {
	Home
	Judge
	Shelf
	Garbage
}

// Judge decides who is first with a chunk.
type Judge interface {
	// FindMark returns the mark of a chunk and whether there is one. That there
	// is none may change.
	FindMark(ctx context.Context, ref ChunkRef) (Mark, bool, error)
	// Claim notes blobs that are about to be written.
	Claim(ctx context.Context, names []string, at time.Time) error
	// Commit decides entries in one transaction and fills in their outcomes.
	// An entry whose transaction was committed although that was not known may
	// come again: it has the same outcome.
	Commit(ctx context.Context, entries []*Entry) error
}

// Shelf finds what can be read.
type Shelf interface {
	// ListSessions returns sessions, the one first received last first.
	ListSessions(ctx context.Context, q ListQuery) ([]Session, error)
	// FindSession returns a session and whether there is one.
	FindSession(ctx context.Context, projectID string, session [sha256.Size]byte) (Session, bool, error)
	// ListChunks returns at most limit chunks of a session, those above after,
	// in the order of their numbers.
	ListChunks(ctx context.Context, session, after int64, limit int) ([]Chunk, error)
	// FindChunk returns a chunk that can be read and whether there is one.
	FindChunk(ctx context.Context, ref ChunkRef) (Chunk, bool, error)
	// ListPersonChunks is ListChunks for the chunks of one person in all
	// sessions of a project: those behind a chunk, in the order of sessions and
	// numbers.
	ListPersonChunks(ctx context.Context, q PersonQuery) ([]Chunk, error)
	// ListCompanions returns whom else the chunks of a person name that were
	// received before a time: the anonymous ids beside a user, or the users beside
	// an anonymous id.
	ListCompanions(ctx context.Context, projectID string, p Person, before time.Time) ([]Person, error)
	// NewestChunk returns when the chunk of a project was received that has the
	// latest time of those that can be read; zero if there is none.
	NewestChunk(ctx context.Context, projectID string) (time.Time, error)
	// ListBlobs returns at most limit chunks of all projects whose blobs are
	// above after, in the order of the names of blobs, with the ids of their
	// sessions.
	ListBlobs(ctx context.Context, after string, limit int) ([]Chunk, error)
}

// Garbage is what goes.
type Garbage interface {
	// DeleteChunks deletes at most Limit chunks, leaves their marks, dooms
	// their blobs, and writes the entry. It returns how many there were.
	DeleteChunks(ctx context.Context, p DeleteParams) (int, error)
	// Doom dooms the blobs that were claimed before a time and that no chunk
	// has, at most limit of them, and returns how many that were.
	Doom(ctx context.Context, before, at time.Time, limit int) (int, error)
	// ListDoomed returns at most limit doomed blobs with names above after, in
	// the order of their names.
	ListDoomed(ctx context.Context, after string, limit int) ([]Doomed, error)
	// Forget takes doomed blobs off the list: they are deleted. One that was
	// doomed once more since it was listed stays there.
	Forget(ctx context.Context, blobs []Doomed) error
}

// Doomed is a blob that is to be deleted.
type Doomed struct {
	Name string
	// Since tells one doom from the next.
	Since int64
}

// Part is what belongs to a person, or a part of it; what is zero does not
// narrow.
type Part struct {
	Person Person
	// AnyUser says that chunks with the anonymous id are meant whatever user they
	// were sent with.
	AnyUser bool
	// ReceivedBefore bounds when chunks were received.
	ReceivedBefore time.Time
	// Received bounds it, too: chunks have no other time that is not the client's.
	Received *Span
}

// Span is a time from From to To, which is not included, in milliseconds since
// 1970.
type Span struct{ From, To int64 }

// PersonQuery says which chunks of a person are asked for.
type PersonQuery struct {
	ProjectID string
	Part      Part
	// AfterSession and After are the place of the chunk before them.
	AfterSession, After int64
	Limit               int
}

// Age says what is old.
type Age struct {
	// Now is the time that age is counted up to, and Keep how long chunks are kept.
	Now  time.Time
	Keep time.Duration
}

// DeleteParams say which chunks go. Exactly one of Session, Part and Age is set.
type DeleteParams struct {
	ProjectID string
	// Session has all its chunks deleted.
	Session *[sha256.Size]byte
	// Part has all chunks deleted that belong to a person, or a part of them.
	Part *Part
	// Age has all chunks deleted that were received longer ago than they are kept.
	// It is counted up to the receipt of the newest event that any server has, and
	// to the time of the clock that all of them share, where these are earlier than
	// its Now: a clock that is ahead lets nothing go.
	Age *Age
	// At is when that is.
	At    time.Time
	Limit int
	// Audit, if set, is written with the first chunk that goes.
	Audit *auditlog.Entry
}
