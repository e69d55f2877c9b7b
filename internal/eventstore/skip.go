package eventstore

import (
	"context"
	"fmt"
)

// Skip moves the mark forward over positions that are lost for good, without
// storing anything. It returns ErrGap if the position is not ahead of the mark.
func (s *Store) Skip(ctx context.Context, through uint64) error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return ErrClosed
	}
	err := transaction(ctx, s.writer, func() error {
		mark, window, err := readMark(ctx, s.writer)
		if err != nil {
			return err
		}
		if through <= mark.Position {
			return fmt.Errorf("%w: position %d is not ahead of %d", ErrGap, through, mark.Position)
		}
		mark.Position = through
		return writeMark(ctx, s.writer, mark, window)
	})
	if err != nil {
		return fmt.Errorf("skip: %w", classify(err))
	}
	return nil
}
