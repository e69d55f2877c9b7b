package replay

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/fault"
)

const (
	// commitAttempts is how often a chunk is written whose claim was taken away
	// meanwhile.
	commitAttempts = 3
	// atOnce is how many chunks for each processor are read and compressed at
	// once: what that takes is several times the body.
	atOnce = 2
)

// Quota admits new chunks.
type Quota interface {
	// ReserveReplay reserves the bytes of a chunk that was received at a time, or
	// refuses it with quota_exceeded and trial_quota_exceeded. commit must be called
	// before the chunk may be counted where it is stored, and may be again; settle
	// once, afterwards, with whether it was.
	ReserveReplay(ctx context.Context, organizationID string, at time.Time, bytes int64) (commit func(), settle func(counted bool), err error)
}

// Observer is told what became of chunks. Its method must be quick.
type Observer interface {
	// Chunk counts one that was acknowledged.
	Chunk(r Receipt)
}

// Params configures a [Service]; every member must be set, except Quota.
type Params struct {
	Store Store
	Blobs Blobs
	// Place is the id of the folder or bucket that Blobs are in: the same for all
	// who have the same Blobs, and for nobody else.
	Place [16]byte
	// Workers is how many groups of chunks are committed at once: 1 where the
	// store has one writer.
	Workers int
	// Alone says that no other process uses the store: what was claimed before
	// the start is nobody's then.
	Alone bool
	// Guard returns the refusal to give while nothing may be written, or nil.
	Guard func() error
	// Quota is asked about chunks that are new; nil is no quota.
	Quota    Quota
	Observer Observer
	Clock    func() time.Time
	// Random is where the names of attempts come from: crypto/rand.Reader.
	Random io.Reader
	Log    *slog.Logger
}

// Service takes in chunks and gives them back. It is safe for concurrent use.
type Service struct {
	params Params
	// claims and commits gather what arrives at once.
	claims  *gather[string]
	commits *gather[*Entry]
	turns   turns
	// marked says that Blobs say themselves which place they are in. taking is held
	// by whoever has them say it.
	marked   atomic.Bool
	taking   sync.Mutex
	warnOnce sync.Once
	// busy bounds the chunks that are being read and compressed.
	busy    chan struct{}
	encoder *zstd.Encoder
	// sweeping is held by whoever deletes blobs.
	sweeping sync.Mutex
	// began is when the service was made.
	began time.Time
}

// NewService returns a Service, which must be closed.
func NewService(p Params) (*Service, error) {
	processors := runtime.GOMAXPROCS(0)
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(atOnce*processors), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, fmt.Errorf("make a zstd encoder: %w", err)
	}
	s := &Service{params: p, busy: make(chan struct{}, atOnce*processors), encoder: encoder}
	s.began = s.now()
	s.claims = newGather(p.Workers, s.claim)
	s.commits = newGather(p.Workers, s.commit)
	return s, nil
}

// Close ends what is under way. No other method may be called any more.
func (s *Service) Close() {
	s.claims.close()
	s.commits.close()
}

func (s *Service) now() time.Time { return s.params.Clock().UTC().Truncate(time.Microsecond) }

// Add takes in a chunk and returns once it is on disk, or was there. body is at
// most [MaxBody] and may be used again after the return. ctx should not end
// with the caller's connection: what has begun is better ended. Faults:
// invalid_json, validation_failed, quota_exceeded and trial_quota_exceeded,
// internal (nothing was taken), unavailable (details.applied says whether it
// may have been).
func (s *Service) Add(ctx context.Context, src Source, body []byte) (Receipt, error) {
	e, r, err := s.read(src, body)
	if err != nil {
		return Receipt{}, err
	}
	receipt, err := s.add(ctx, src, e, r)
	if err == nil {
		s.params.Observer.Chunk(receipt)
	}
	return receipt, err
}

// read makes an entry of a body, but for what an attempt needs.
func (s *Service) read(src Source, body []byte) (*Entry, *request, error) {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	r, err := readRequest(body)
	if err != nil {
		return nil, nil, err
	}
	e := &Entry{
		ChunkRef:  ChunkRef{ProjectID: src.ProjectID, Session: SessionHash(r.sessionID), Chunk: r.chunk},
		SessionID: r.sessionID, Person: r.person, Bytes: int64(len(r.events)),
	}
	if e.Digest, err = digestOf(r.events); err != nil {
		return nil, nil, err
	}
	return e, &r, nil
}

// add judges an entry. Requests of one chunk take turns: the second one neither
// asks for quota nor writes a blob for what the first is storing.
func (s *Service) add(ctx context.Context, src Source, e *Entry, r *request) (Receipt, error) {
	defer s.turns.take(e.ChunkRef)()
	// A mark is never taken away: who finds one need not write anything.
	mark, found, err := s.params.Store.FindMark(ctx, e.ChunkRef)
	if err != nil {
		return Receipt{}, fmt.Errorf("look for a chunk: %w", err)
	}
	if found {
		return Receipt{Duplicate: true, Conflict: mark.Digest != e.Digest}, nil
	}
	if err := s.params.Guard(); err != nil {
		return Receipt{}, err
	}
	if err := s.refuseElsewhere(ctx); err != nil {
		return Receipt{}, err
	}
	e.ReceivedAt = s.now()
	if s.params.Quota == nil {
		return s.write(ctx, e, r, func() {})
	}
	commit, settle, err := s.params.Quota.ReserveReplay(ctx, src.OrganizationID, e.ReceivedAt, e.Bytes)
	if err != nil {
		return Receipt{}, err
	}
	counted := false
	defer func() { settle(counted) }()
	receipt, err := s.write(ctx, e, r, commit)
	counted = err == nil && !receipt.Duplicate
	return receipt, err
}

// write attempts to be first with a chunk until that is decided. It calls commit
// before it may be.
func (s *Service) write(ctx context.Context, e *Entry, r *request, commit func()) (Receipt, error) {
	blob := s.compress(e, r)
	for range commitAttempts {
		if err := s.attempt(ctx, e, blob, commit); err != nil {
			return Receipt{}, err
		}
		if !e.Outcome.Lost {
			return e.Outcome.Receipt, nil
		}
	}
	return Receipt{}, fault.New(api.CodeUnavailable, "the chunk took too long to be written").With("applied", false).After(time.Second)
}

// compress returns the blob of a chunk, and notes what it shows.
func (s *Service) compress(e *Entry, r *request) []byte {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	e.Summary = r.shown.summary(e.ReceivedAt)
	blob := s.encoder.EncodeAll(r.events, nil)
	e.StoredBytes = int64(len(blob))
	return blob
}

// attempt writes the blob under a new name and has the entry decided.
func (s *Service) attempt(ctx context.Context, e *Entry, blob []byte, commit func()) error {
	if _, err := io.ReadFull(s.params.Random, e.Attempt[:]); err != nil {
		return fmt.Errorf("name an attempt: %w", err)
	}
	e.Blob = blobName(e.ProjectID, e.Attempt, blob)
	if err := s.claims.do(e.Blob); err != nil {
		return refused(err, "the chunk could not be announced")
	}
	crash.Point("replay.claimed")
	if err := s.params.Blobs.Put(ctx, e.Blob, blob); err != nil {
		return fault.Wrap(api.CodeInternal, err, "the chunk could not be stored; nothing was accepted").After(time.Second)
	}
	crash.Point("replay.stored")
	commit()
	if err := s.commits.do(e); err != nil {
		return refused(err, "the chunk could not be noted")
	}
	crash.Point("replay.committed")
	return nil
}

// refused makes a refusal of what has failed before anything was committed,
// unless it says more itself.
func refused(err error, message string) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Wrap(api.CodeInternal, err, "%s; nothing was accepted", message)
}

// blobName names the blob of one attempt: by the project, so that no two share
// one, by what it holds, so that damage shows, and by the attempt, so that to
// delete one attempt's blob touches no other's.
func blobName(projectID string, attempt [16]byte, blob []byte) string {
	sum := sumOf(blob)
	return projectID + "/" + sum[:2] + "/" + sum + "-" + hex.EncodeToString(attempt[:]) + ".zst"
}

// claim and commit run what was gathered.
func (s *Service) claim(ctx context.Context, names []string) error {
	return s.params.Store.Claim(ctx, names, s.now())
}

func (s *Service) commit(ctx context.Context, entries []*Entry) error {
	for _, e := range entries {
		e.Outcome = Outcome{}
	}
	err := s.params.Store.Commit(ctx, entries)
	if err != nil && len(entries) > 1 {
		s.params.Log.Warn("a group of replay chunks was not committed", "members", len(entries), "error", err)
	}
	return err
}
