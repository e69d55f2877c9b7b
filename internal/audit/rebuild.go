package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

// Rebuild replaces the claims by those that the rows and the backlog call for
// under a window, in milliseconds, and returns how many there are. Nothing
// else may use the stores meanwhile. Positions go on after the last one that
// either store knows.
func (s Stores) Rebuild(ctx context.Context, window int64) (int, error) {
	v, err := s.view(ctx)
	if err != nil {
		return 0, err
	}
	n, err := s.rebuild(ctx, v, window)
	return n, errors.Join(err, v.close())
}

func (s Stores) rebuild(ctx context.Context, v *view, window int64) (int, error) {
	mark := v.events.Mark()
	state := s.Intake.State()
	state.Last = max(state.Last, mark.Position)
	state.Received = max(state.Received, mark.Received)
	state.Window = window
	n, err := s.Intake.Rebuild(state, func(yield func(record.Identity, dedup.Claim) error) error {
		return v.expected(ctx, state.Received-window, yield)
	})
	if err != nil {
		return n, fmt.Errorf("rebuild claims: %w", err)
	}
	if err := s.Intake.Trim(mark.Position); err != nil {
		return n, err
	}
	return n, nil
}
