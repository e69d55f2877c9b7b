package sqldb

import (
	"context"
	"fmt"
)

// Generation names a stretch of a data folder's life: from a start, or from a
// backup, to the next.
type Generation [16]byte

// CreateGeneration notes a generation for good.
func (d *DB) CreateGeneration(ctx context.Context, g Generation) error {
	err := d.Write(ctx, func(q *Queries) error {
		return q.CreateGeneration(ctx, CreateGenerationParams{Generation: g[:], MadeAt: d.clock().UnixMicro()})
	})
	if err != nil {
		return fmt.Errorf("note a generation: %w", err)
	}
	return nil
}

// HasGeneration reports whether a generation was noted.
func (d *DB) HasGeneration(ctx context.Context, g Generation) (bool, error) {
	return hasGeneration(ctx, d.reader, g)
}

// HasGeneration reports whether a generation was noted, as far as the snapshot
// knows. In a store from before there were any, none was.
func (s *Snapshot) HasGeneration(ctx context.Context, g Generation) (bool, error) {
	there, err := s.has(ctx, "generations")
	if err != nil || !there {
		return false, err
	}
	return hasGeneration(ctx, s.conn, g)
}

func hasGeneration(ctx context.Context, from DBTX, g Generation) (bool, error) {
	n, err := New(from).CountGenerations(ctx, g[:])
	if err != nil {
		return false, fmt.Errorf("look for a generation: %w", err)
	}
	return n > 0, nil
}
