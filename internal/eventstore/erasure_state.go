package eventstore

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
)

// ErasureState says what became of an erasure.
type ErasureState int

const (
	// ErasureWaiting says that the store has not come to its position.
	ErasureWaiting ErasureState = iota
	// ErasureApplied says that what the person had before the position is gone.
	ErasureApplied
	// ErasureMissing says that the store is past the position and did not apply
	// it there. It was lost with other records in a repair, or set aside.
	// Whoever wants it must ask intake for another one.
	ErasureMissing
)

// ErasureState returns what became of the erasure of a person that intake put
// at a position, for 35 days after it was received; later it is
// ErasureMissing. It returns ErrNoPerson if not exactly one id is set.
func (s *Store) ErasureState(ctx context.Context, project uint32, p Person, position uint64) (ErasureState, error) {
	if !p.Valid() {
		return ErasureMissing, ErrNoPerson
	}
	state := ErasureMissing
	err := s.read(ctx, func(conn *duck.Conn, mark Mark) error {
		if mark.Position < position {
			state = ErasureWaiting
			return nil
		}
		n, err := scalar(ctx, conn, `SELECT count(*) FROM erasures WHERE seq = ? AND project = ? AND person = ?`,
			int64(position), int64(project), s.number(project, p))
		if n > 0 {
			state = ErasureApplied
		}
		return err
	})
	if err != nil {
		return ErasureMissing, fmt.Errorf("look for an erasure: %w", err)
	}
	return state, nil
}
