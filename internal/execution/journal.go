package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// pending is what a run has to write: the latest of each row.
type pending struct {
	steps map[Place]*Step
	calls map[string]*Call
	// bytes is how much it is, about.
	bytes int
}

// What an execution may keep.
const (
	// maxPending is how many bytes may wait to be written with what is written
	// next, and maxPendingRows how many steps.
	maxPending     = 256 << 10
	maxPendingRows = 256
	// maxOutputs is how many bytes the outputs of all its steps may have.
	maxOutputs = 16 << 20
	// maxSaid is how many bytes of one request or response are kept, and
	// maxAllSaid of all of them since the run has begun here.
	maxSaid    = 64 << 10
	maxAllSaid = 4 << 20
)

// crowded says that what waits to be written is to be written now.
func (r *run) crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.bytes > maxPending || len(r.pending.steps) > maxPendingRows
}

// mayGive says whether a step may give out so many bytes.
func (r *run) mayGive(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given += n
	return r.given <= maxOutputs
}

// said is what is kept of a request or a response: all of it, unless it is too
// much.
func (r *run) said(text json.RawMessage) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(text) > maxSaid || r.heard+len(text) > maxAllSaid {
		return fmt.Appendf(nil, `{"omitted_bytes":%d}`, len(text))
	}
	r.heard += len(text)
	return text
}

// note changes what is known of a step, or of a call, and has it written with
// what is written next.
func (r *run) note(s *Step, c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s != nil {
		r.journal[s.Place] = s
		if r.pending.steps == nil {
			r.pending.steps = map[Place]*Step{}
		}
		r.pending.steps[s.Place] = s
		r.pending.bytes += len(s.Output)
		shown := *s
		shown.Output = shownOutput(s)
		if len(r.program.Trace.Redact) > 0 { // it is in the trace, without what is not to be shown
			shown.Output = nil
		}
		r.engine.hub.tell(r.x.ID, Event{Type: "step", Step: &shown})
	}
	if c == nil {
		return
	}
	if r.calls[c.ID] == nil {
		r.begun = append(r.begun, c.ID)
	}
	if r.pending.calls == nil {
		r.pending.calls = map[string]*Call{}
	}
	r.pending.calls[c.ID] = c
	r.pending.bytes += len(c.Request) + len(c.Response)
	known := *c
	known.Request, known.Response = nil, nil // the store keeps them
	r.calls[c.ID] = &known
}

// known returns what the journal says of a step, nil if nothing.
func (r *run) known(at Place) *Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal[at]
}

// take takes what is to be written, in one order.
func (r *run) take() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Progress{Number: r.number, ProjectID: r.x.ProjectID}
	for _, s := range r.pending.steps {
		p.Steps = append(p.Steps, *s)
	}
	for _, id := range slices.Sorted(maps.Keys(r.pending.calls)) {
		p.Calls = append(p.Calls, *r.pending.calls[id])
	}
	r.pending = pending{}
	return p
}

// flush writes the journal, and returns once everything that was noted before is
// written, also what somebody else is writing. After a failure nothing more is
// written: what came before it is missing. errLost if the lease has passed on.
func (r *run) flush() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.unwritten != nil {
		return r.unwritten
	}
	p := r.take()
	if len(p.Steps) == 0 && len(p.Calls) == 0 {
		return nil
	}
	r.unwritten = r.write(func() *credit.Op { return progressOp(&r.engine.params, &p, r.lease) })
	return r.unwritten
}

// Delays between attempts to write.
const (
	writeDelay    = 50 * time.Millisecond
	writeMaxDelay = 5 * time.Second
)

// writeAttempts is how often the store may refuse to write something for
// another reason than that it cannot write at all.
const writeAttempts = 3

// write runs an op until it is done, or until it is certain that it cannot be:
// what a run has done must not be lost because the store is away for a while.
// errLost if the lease has passed on, errUnwritten if the store does not take
// it.
func (r *run) write(op func() *credit.Op) error {
	refused := 0
	for delay := writeDelay; ; delay = min(2*delay, writeMaxDelay) {
		err := r.engine.params.Ledger.Do(context.Background(), op())
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errLost):
			r.cancel(errLost)
			return errLost
		case fault.CodeOf(err) != api.CodeUnavailable:
			if refused++; refused == writeAttempts {
				return fmt.Errorf("%w: %w", errUnwritten, err)
			}
		}
		r.engine.params.Log.Warn("the journal of an execution was not written; it is tried again", "execution", r.x.ID, "error", err)
		if !r.mayWait(delay) {
			return fmt.Errorf("write the journal of an execution: %w", context.Cause(r.ctx))
		}
	}
}

// mayWait waits, and says whether the run may still write then. It may when
// only its time is over or it was cancelled.
func (r *run) mayWait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	done := r.ctx.Done()
	for {
		select {
		case <-timer.C:
			return true
		case <-done:
			if reason := context.Cause(r.ctx); errors.Is(reason, errStopping) || errors.Is(reason, errLost) {
				return false
			}
			done = nil
		}
	}
}

// lost refuses an op of a run whose lease has passed on.
func lost() error { return fault.Wrap(api.CodeConflict, errLost, "the execution is another's") }

// holds says whether a lease is in force.
func (s *Seen) holds(lease Lease) bool {
	return s.Found && s.Status == Running && s.Lease == lease
}

// progressOp writes rows of the journal.
func progressOp(params *Params, p *Progress, lease Lease) *credit.Op {
	return &credit.Op{
		ProjectID: p.ProjectID, Along: params.Store.AlongProgress(p),
		Decide: func(*credit.State) (credit.Effect, error) {
			if !p.Seen.holds(lease) {
				return credit.Effect{}, lost()
			}
			return credit.Effect{}, nil
		},
	}
}

// endOp ends an execution that runs and settles its hold.
func endOp(params *Params, end *End, used credit.Amount, lease Lease) *credit.Op {
	x := &end.Execution
	op := &credit.Op{ProjectID: x.ProjectID, Along: params.Store.AlongEnd(end)}
	if x.Held {
		op.Subject = credit.Subject{Customer: x.Customer, HoldID: x.ID}
	}
	op.Decide = func(st *credit.State) (credit.Effect, error) {
		// A COMMIT that was not confirmed has landed: an epoch has one end.
		if end.Seen.Found && end.Seen.Status.Ended() && end.Seen.Lease.Epoch == lease.Epoch {
			return credit.Effect{Repeat: true}, nil
		}
		if !end.Seen.holds(lease) {
			return credit.Effect{}, lost()
		}
		if !x.Held {
			x.Unbilled = used
			return credit.Effect{}, nil
		}
		settled, err := credit.SettleExecution(st, credit.SettleParams{ProjectID: x.ProjectID, Used: used, NewID: params.newID})
		x.Charged, x.Unbilled = settled.Charged, settled.Unbilled
		return settled.Effect, err
	}
	return op
}
