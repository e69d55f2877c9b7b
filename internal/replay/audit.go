package replay

import (
	"context"
	"fmt"
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

// Verify reads the blob of every chunk and compares it with what was written;
// chunks may come and go meanwhile. Differences are in the result; an error
// means that the comparison could not be made.
func Verify(ctx context.Context, store Store, blobs Blobs) (Audit, error) {
	s := &Service{params: Params{Store: store, Blobs: blobs}}
	a := Audit{Differences: []string{}}
	for after := ""; ; {
		page, err := store.ListBlobs(ctx, after, sweepPage)
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
		a.Differences = append(a.Differences, fmt.Sprintf("chunk %d of a replay, received %s, cannot be read: %v (%s)",
			c.Chunk, c.ReceivedAt.Format("2006-01-02T15:04:05Z07:00"), err, c.Blob))
	}
	return nil
}
