package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Session is a recording that can be read, as its chunks show it.
type Session struct {
	Number    int64
	SessionID string
	// Person has the ids of the chunk received last that has one.
	Person Person
	Summary

	// Chunks is how many there are, Bytes what was sent.
	Chunks, Bytes int64
}

// Chunk is a chunk that can be read.
type Chunk struct {
	// Session is the number of its session, SessionID that session's id; they
	// are zero where a list is about one session.
	Session   int64
	SessionID string
	// ProjectID is set where a list is about all projects.
	ProjectID string
	Chunk     int64
	Blob      string
	// Bytes are the events as they were sent, StoredBytes as they are stored.
	Bytes, StoredBytes int64
	ReceivedAt         time.Time
}

// ListQuery says which sessions are asked for; what is zero does not narrow.
type ListQuery struct {
	ProjectID string
	// Person is a user's id or an anonymous one, of any chunk.
	Person string
	// From and To bound when sessions have started; To is not included.
	From, To time.Time
	// MinDuration is the shortest that is shown.
	MinDuration time.Duration
	// HasErrors shows those with errors, or those without.
	HasErrors *bool
	// Before is the number of the session before them; 0 for the first page.
	Before int64
	Limit  int
}

// Recording is a session with its chunks.
type Recording struct {
	Session

	Chunks []Chunk
	// Gaps are the first missing numbers between 0 and the greatest, GapCount
	// is how many there are.
	Gaps     []int64
	GapCount int64
}

// maxGaps is how many missing numbers are spelt out: one chunk may say that it
// is the millionth.
const maxGaps = 10_000

// List returns sessions that can be read, the one first received last first.
func (s *Service) List(ctx context.Context, q ListQuery) ([]Session, error) {
	all, err := s.params.Store.ListSessions(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	return all, nil
}

// Get returns a session with all its chunks. Fault: not_found.
func (s *Service) Get(ctx context.Context, projectID, sessionID string) (Recording, error) {
	session, found, err := s.params.Store.FindSession(ctx, projectID, SessionHash(sessionID))
	if err != nil {
		return Recording{}, fmt.Errorf("find a replay: %w", err)
	}
	if !found {
		return Recording{}, noReplay()
	}
	r := Recording{Session: session}
	for one, err := range s.chunks(ctx, session.Number) {
		if err != nil {
			return Recording{}, err
		}
		r.add(one)
	}
	if len(r.Chunks) == 0 { // deleted between the two looks
		return Recording{}, noReplay()
	}
	return r, nil
}

// chunkPage is how many chunks are read at once.
const chunkPage = 1000

// chunks yields the chunks of a session in order.
func (s *Service) chunks(ctx context.Context, session int64) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for after := int64(-1); ; {
			page, err := s.params.Store.ListChunks(ctx, session, after, chunkPage)
			if err != nil {
				yield(Chunk{}, fmt.Errorf("list the chunks of a replay: %w", err))
				return
			}
			for _, one := range page {
				if !yield(one, nil) {
					return
				}
				after = one.Chunk
			}
			if len(page) < chunkPage {
				return
			}
		}
	}
}

// add adds the next chunk and the gap before it.
func (r *Recording) add(c Chunk) {
	next := int64(0)
	if n := len(r.Chunks); n > 0 {
		next = r.Chunks[n-1].Chunk + 1
	}
	r.GapCount += c.Chunk - next
	for ; next < c.Chunk && len(r.Gaps) < maxGaps; next++ {
		r.Gaps = append(r.Gaps, next)
	}
	r.Chunks = append(r.Chunks, c)
}

// Open returns what writes the events of a chunk, byte for byte as they were
// sent. What can fail fails before that: not_found; conflict when the blobs are in
// another place; internal when it is missing or damaged, which a
// repeat does not change; unavailable when the store of blobs does not answer.
func (s *Service) Open(ctx context.Context, projectID, sessionID string, chunk int64) (io.WriterTo, error) {
	ref := ChunkRef{ProjectID: projectID, Session: SessionHash(sessionID), Chunk: chunk}
	found, there, err := s.params.Store.FindChunk(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("find a chunk: %w", err)
	}
	if !there {
		return nil, noChunk()
	}
	blob, err := s.load(ctx, found)
	if errors.Is(err, fs.ErrNotExist) {
		// Perhaps it was deleted between the two looks.
		if _, there, again := s.params.Store.FindChunk(ctx, ref); again == nil && !there {
			return nil, noChunk()
		}
	}
	if err != nil {
		return nil, s.unreadable(ctx, err)
	}
	return packed(blob), nil
}

// errDamaged is returned for a blob that is not what was written.
var errDamaged = errors.New("the blob is damaged")

// load returns a chunk's blob, whole and undamaged.
func (s *Service) load(ctx context.Context, c Chunk) ([]byte, error) {
	blob, err := s.params.Blobs.Get(ctx, c.Blob)
	if err != nil {
		return nil, err
	}
	sum, _, _ := strings.Cut(path.Base(c.Blob), "-")
	if sumOf(blob) != sum {
		return nil, fmt.Errorf("%w: it has %d bytes and another digest", errDamaged, len(blob))
	}
	return blob, nil
}

func sumOf(blob []byte) string {
	sum := sha256.Sum256(blob)
	return hex.EncodeToString(sum[:])
}

// unreadable says what it means that a chunk's blob could not be read.
func (s *Service) unreadable(ctx context.Context, err error) error {
	if isUnreadable(err) {
		if elsewhere, again := s.elsewhere(ctx); again != nil {
			return fmt.Errorf("find out where a chunk is: %w", again)
		} else if elsewhere {
			return fault.New(api.CodeConflict, "the chunk is in the place where recordings are kept, which this server does not have")
		}
		return fault.Wrap(api.CodeInternal, err, "the chunk is missing or damaged in storage: see actionpulse verify").With("retryable", false)
	}
	return fault.Wrap(api.CodeUnavailable, err, "the storage of replays does not answer").After(time.Second)
}

// isUnreadable says that a blob is missing or damaged, which stays so.
func isUnreadable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged)
}

// packed is a blob that is unpacked while it is written.
type packed []byte

// WriteTo implements io.WriterTo.
func (p packed) WriteTo(w io.Writer) (int64, error) {
	decoder, err := zstd.NewReader(bytes.NewReader(p), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return 0, fmt.Errorf("unpack a chunk: %w", err)
	}
	defer decoder.Close()
	n, err := decoder.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("unpack a chunk: %w", err)
	}
	return n, nil
}

func noReplay() error { return fault.New(api.CodeNotFound, "there is no such replay") }

func noChunk() error { return fault.New(api.CodeNotFound, "there is no such chunk") }
