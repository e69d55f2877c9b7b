package replay

import (
	"context"
	"fmt"
	"log/slog"
)

// maxDifferences is how many differences an audit spells out.
const maxDifferences = 20

// Audit says whether the chunks have their blobs.
type Audit struct {
	// Chunks counts what was looked at.
	Chunks int64
	// Differences are the first ones found, in words.
	Differences []string
}

// VerifyParams say what to look at; they are as in [Params].
type VerifyParams struct {
	Store Store
	Blobs Blobs
	Place [16]byte
}

// elsewhereText says, once, why no chunk was looked at.
const elsewhereText = "session recordings are kept in another place: none was compared; name the bucket that they are in by replay.blobs, or verify the folder of the server that has them"

// Verify reads the blob of every chunk and compares it with what was written;
// chunks may come and go meanwhile. Differences are in the result; an error
// means that the comparison could not be made.
func Verify(ctx context.Context, p VerifyParams) (Audit, error) {
	s := &Service{params: Params{Store: p.Store, Blobs: p.Blobs, Place: p.Place, Log: slog.New(slog.DiscardHandler)}}
	a := Audit{Differences: []string{}}
	elsewhere, err := s.elsewhere(ctx)
	if err != nil {
		return a, fmt.Errorf("find out where recordings are kept: %w", err)
	}
	if elsewhere {
		a.Differences = append(a.Differences, elsewhereText)
		return a, nil
	}
	for after := ""; ; {
		page, err := p.Store.ListBlobs(ctx, after, sweepPage)
		if err != nil {
			return a, fmt.Errorf("list the chunks of replays: %w", err)
		}
		for _, one := range page {
			if err := s.verify(ctx, &a, one); err != nil {
				return a, err
			}
			after = one.Blob
		}
		if len(page) < sweepPage {
			return a, nil
		}
	}
}

// verify looks at one chunk.
func (s *Service) verify(ctx context.Context, a *Audit, c Chunk) error {
	a.Chunks++
	_, err := s.load(ctx, c)
	switch {
	case err == nil || len(a.Differences) == maxDifferences:
		return nil
	case !isUnreadable(err):
		return fmt.Errorf("read the blob of a chunk: %w", err)
	}
	// Perhaps the chunk was deleted since it was listed.
	page, again := s.params.Store.ListBlobs(ctx, c.Blob[:len(c.Blob)-1], 1)
	if again != nil {
		return fmt.Errorf("look at a chunk again: %w", again)
	}
	if len(page) == 1 && page[0].Blob == c.Blob {
		a.Differences = append(a.Differences, fmt.Sprintf("chunk %d of the replay %q in project %s, received %s, cannot be read: %v (%s)",
			c.Chunk, c.SessionID, c.ProjectID, c.ReceivedAt.Format("2006-01-02T15:04:05Z07:00"), err, c.Blob))
	}
	return nil
}
