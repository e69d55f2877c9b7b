package execution

import (
	"context"
	"fmt"
)

// forgetGroup is how many rows of each kind one transaction changes.
const forgetGroup = 200

// Sweep forgets what the steps of executions have given, and what was said in
// their calls, once it has been kept long enough, and returns how many rows it
// has changed. The executions themselves, their prices and their usage stay for
// ever. Nothing that runs depends on it.
func (s *Service) Sweep(ctx context.Context) (int, error) {
	total := 0
	for s.params.TraceRetention > 0 {
		if err := s.writable(); err != nil {
			return total, err
		}
		n, err := s.params.Store.Forget(ctx, s.params.now().Add(-s.params.TraceRetention), forgetGroup)
		if err != nil {
			return total, fmt.Errorf("forget old traces: %w", err)
		}
		if total += n; n == 0 {
			break
		}
	}
	return total, nil
}
