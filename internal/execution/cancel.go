package execution

import (
	"context"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// errMoved says that an execution is not in the state any more that it was seen
// in.
var errMoved = errors.New("the state of the execution has changed meanwhile")

// cancelAttempts bounds how often an execution is looked at that keeps
// changing.
const cancelAttempts = 5

// Cancel ends an execution. One that is queued ends at once, one that runs as
// soon as its process sees it: its call is cut, and what it has used is
// charged. One that has ended stays as it is, so a repeat does no harm. Faults:
// not_found; unavailable (with applied false or "unknown").
func (s *Service) Cancel(ctx context.Context, projectID, executionID string) (Execution, error) {
	for range cancelAttempts {
		x, err := s.Get(ctx, projectID, executionID)
		if err != nil || x.Status.Ended() {
			return x, err
		}
		if err := s.writable(); err != nil {
			return x, err
		}
		if x.Status == Running {
			return s.askCancel(ctx, &x)
		}
		err = s.cancelQueued(ctx, &x)
		if !errors.Is(err, errMoved) {
			return x, err
		}
	}
	return Execution{}, fault.Wrap(api.CodeUnavailable, errMoved, "the execution changes faster than it can be cancelled").With("applied", false)
}

// askCancel has the process that runs an execution end it.
func (s *Service) askCancel(ctx context.Context, x *Execution) (Execution, error) {
	watch := s.engine.hub.watch(x.ID)
	defer watch.stop()
	if err := s.params.Store.AskCancel(ctx, x.Number, s.params.now()); err != nil {
		return *x, fmt.Errorf("ask for an execution to end: %w", err)
	}
	s.engine.cancel(x.ID)
	wait := cancelWait
	return s.await(ctx, watch, *x, &wait)
}

// cancelWait is how long a request to cancel waits to see the end.
const cancelWait = lookAgain

// cancelQueued ends an execution that nobody runs. What it has used before is
// charged.
func (s *Service) cancelQueued(ctx context.Context, x *Execution) error {
	version, err := s.params.Flows.Load(ctx, x.FlowID, x.Version)
	if err != nil {
		return fmt.Errorf("read the flow of an execution: %w", err)
	}
	r := newRun(s.engine, *x, version.Program)
	defer r.cancel(errLost)
	if err := r.recall(); err != nil {
		return err
	}
	seen := r.lease
	r.x.FinishedAt, r.x.Status = s.params.now(), Cancelled
	used, usage := r.used()
	r.x.Usage = usage
	end := &End{Execution: r.x, Progress: r.take()}
	for _, c := range r.unanswered() {
		end.Calls = append(end.Calls, *c)
	}
	op := endOp(&s.params, end, used, seen)
	settle := op.Decide
	op.Decide = func(st *credit.State) (credit.Effect, error) {
		if !end.Seen.Found || end.Seen.Status != Queued || end.Seen.Lease.Epoch != seen.Epoch || st.Hold != nil && st.Hold.State != credit.HoldOpen {
			return credit.Effect{}, fault.Wrap(api.CodeConflict, errMoved, "the execution has changed")
		}
		end.Seen.Status, end.Seen.Lease = Running, seen // what settle demands of a run
		return settle(st)
	}
	if err := s.params.Ledger.Do(context.WithoutCancel(ctx), op); err != nil {
		return fmt.Errorf("cancel an execution: %w", err)
	}
	r.x = end.Execution
	*x = r.x
	s.engine.hub.end(x)
	r.report()
	return nil
}
