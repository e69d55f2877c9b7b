package execution

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
	"github.com/actionpulse/actionpulse/internal/model"
)

// run is an execution being run by this process.
type run struct {
	engine *Engine
	// number and lease are the execution's, and never change.
	number int64
	lease  Lease
	// x is only touched by the run itself.
	x       Execution
	program *flow.Program
	// broken is why the execution cannot be run at all, nil if it can.
	broken error
	// ctx ends when nothing more is to be done; its cause says why.
	ctx    context.Context //nolint:containedctx // the life of the run, and not of a call
	cancel context.CancelCauseFunc

	// mu guards what follows: steps of a block may run at the same time.
	mu sync.Mutex
	// journal is what is known of each step, calls of each call.
	journal map[Place]*Step
	calls   map[string]*Call
	// begun are the ids of the calls in the order of their start.
	begun []string
	// pending is what is not written yet.
	pending pending
	// given and heard are how many bytes steps have given out, and how many of
	// what was said are kept.
	given, heard int
	// started says that a step has begun, also one that is not in the journal
	// yet.
	started bool

	// writing is held by who writes the journal; unwritten says that something
	// of it is lost, and why.
	writing   sync.Mutex
	unwritten error
}

func newRun(e *Engine, x Execution, program *flow.Program) *run {
	r := &run{
		engine: e, number: x.Number, lease: x.Lease, x: x, program: program,
		journal: map[Place]*Step{}, calls: map[string]*Call{},
	}
	limited, stop := context.WithDeadlineCause(context.Background(), r.deadline(), errTimeout)
	ctx, cancel := context.WithCancelCause(limited)
	r.ctx, r.cancel = ctx, func(reason error) {
		cancel(reason)
		stop()
	}
	return r
}

// deadline is when the time of the execution is over, by the machine's own
// clock: the server's may be another's in tests, and may jump.
func (r *run) deadline() time.Time {
	left := r.program.Limits.Timeout - r.engine.params.now().Sub(r.x.StartedAt)
	return time.Now().Add(min(left, r.program.Limits.Timeout))
}

// do runs the execution to its end, or as far as it goes here.
func (r *run) do() {
	defer r.cancel(errLost) // whatever the reason: nothing is left that listens
	output, err := r.perform()
	r.finish(output, err)
}

// perform runs the steps and returns the output.
func (r *run) perform() (output []byte, err error) {
	defer func() {
		if value := recover(); value != nil {
			r.engine.params.Log.Error("a run has panicked", "execution", r.x.ID, "panic", value, "stack", string(debug.Stack()))
			err = &step.Error{Code: api.CodeStepFailed, Message: "the server failed in a step"}
		}
	}()
	if r.x.Lease.Epoch > 1 { // it has run before
		if err := r.recall(); err != nil {
			return nil, err
		}
	}
	if r.x.CancelAsked {
		r.cancel(errCancelled)
	}
	if r.broken != nil {
		return nil, r.broken
	}
	scope, err := r.scope()
	if err != nil {
		return nil, err
	}
	if err := r.RunBlock(r.ctx, r.program.Steps, scope, ""); err != nil {
		return nil, cause(r.ctx, err)
	}
	return r.output(scope)
}

// cause returns why a context has ended, if that is why err came back.
func cause(ctx context.Context, err error) error {
	for _, reason := range []error{errLost, errStopping, errCancelled, errTimeout} {
		if errors.Is(context.Cause(ctx), reason) {
			return reason
		}
	}
	return err
}

// recall reads the journal, and forgets what is not in it.
func (r *run) recall() error {
	var steps []Step
	var calls []Call
	for delay := writeDelay; ; delay = min(2*delay, writeMaxDelay) {
		var err error
		if steps, calls, err = r.engine.params.Store.Journal(context.Background(), r.x.Number); err == nil {
			break
		}
		r.engine.params.Log.Warn("the journal of an execution was not read; it is tried again", "execution", r.x.ID, "error", err)
		if !r.mayWait(delay) {
			return context.Cause(r.ctx)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal, r.calls, r.begun, r.pending, r.started = map[Place]*Step{}, map[string]*Call{}, nil, pending{}, false
	r.given = 0
	for i := range steps {
		r.journal[steps[i].Place] = &steps[i]
		r.started = r.started || steps[i].State != StepSkipped
		r.given += len(steps[i].Output)
	}
	for i := range calls {
		calls[i].Request, calls[i].Response = nil, nil
		r.calls[calls[i].ID] = &calls[i]
		r.begun = append(r.begun, calls[i].ID)
	}
	return nil
}

// scope is what the first step sees.
func (r *run) scope() (*template.Scope, error) {
	input, err := template.Decode(r.x.Input)
	if err != nil {
		return nil, fmt.Errorf("read the input of an execution: %w", err)
	}
	var given any
	if r.x.Context != nil {
		if given, err = template.Decode(r.x.Context); err != nil {
			return nil, fmt.Errorf("read the context of an execution: %w", err)
		}
	}
	return template.NewScope(input, given), nil
}

// output is what the execution gives out: null if the flow does not say.
func (r *run) output(scope *template.Scope) ([]byte, error) {
	if r.program.Output == nil {
		return []byte("null"), nil
	}
	value, err := r.program.Output.Eval(scope)
	if err != nil {
		return nil, step.Failed(err, "output: "+err.Error())
	}
	text, err := template.Encode(value)
	if err != nil {
		return nil, step.Failed(err, "output: "+err.Error())
	}
	return text, nil
}

// finish ends the execution for the reason that the steps have ended: the one
// path on which a run that has begun is left.
func (r *run) finish(output []byte, reason error) {
	x := &r.x
	x.FinishedAt = r.engine.params.now()
	if _, failed := errors.AsType[*step.Error](reason); reason != nil && !failed && !isReason(reason) {
		r.engine.params.Log.Error("an execution cannot go on", "execution", x.ID, "error", reason)
		reason = &step.Error{Code: api.CodeStepFailed, Message: "the server failed"}
	}
	switch failure, failed := errors.AsType[*step.Error](reason); {
	case reason == nil:
		x.Status, x.Output = Succeeded, output
	case errors.Is(reason, errLost):
		return // it is another's now
	case errors.Is(reason, errStopping):
		r.release()
		return
	case errors.Is(reason, errCancelled):
		x.Status = Cancelled
	case errors.Is(reason, errTimeout):
		x.Status, x.Failure = Failed, &Failure{
			Code: api.CodeExecutionTimeout, Message: fmt.Sprintf("the execution did not end within %v", r.program.Limits.Timeout),
		}
	case failed:
		x.Status, x.Failure = Failed, &Failure{Code: failure.Code, Message: blankText(failure.Message, r.secrets(nil, nil))}
	}
	r.end()
}

// isReason says whether a run has ended for a reason that the engine gives.
func isReason(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, errStopping) || errors.Is(err, errCancelled) || errors.Is(err, errTimeout)
}

// end writes how the execution has ended, and settles its hold.
func (r *run) end() {
	created, err := false, r.unwritten
	if err == nil {
		created, err = r.writeEnd()
	}
	if errors.Is(err, errUnwritten) {
		r.engine.params.Log.Error("an execution ends without the last of its journal", "execution", r.x.ID, "error", err)
		r.x.Status, r.x.Output, r.x.Failure = Failed, nil, &Failure{Code: api.CodeStepFailed, Message: "the server failed"}
		// What is left out is not charged: nobody could say what for.
		if err = r.recall(); err == nil {
			created, err = r.writeEnd()
		}
	}
	switch {
	case errors.Is(err, errLost):
		return // it is another's now
	case err != nil:
		r.engine.params.Log.Error("a run has ended, and its execution was not", "execution", r.x.ID, "error", err)
		r.release()
		return
	}
	crash.Point("execution.ended")
	if !created { // a COMMIT that was not confirmed had landed
		if x, found, err := r.engine.params.Store.Find(context.Background(), r.x.ProjectID, r.x.ID); err == nil && found {
			r.x = x
		}
	}
	r.engine.hub.end(&r.x)
	r.report()
}

// writeEnd writes the end with what is left of the journal, and says whether it
// was not there before.
func (r *run) writeEnd() (created bool, err error) {
	used, usage := r.used()
	r.x.Usage = usage
	end := &End{Progress: r.take(), Execution: r.x}
	for _, c := range r.unanswered() {
		end.Calls = append(end.Calls, *c)
	}
	var op *credit.Op
	if err := r.write(func() *credit.Op {
		op = endOp(&r.engine.params, end, used, r.lease)
		return op
	}); err != nil {
		return false, err
	}
	r.x = end.Execution
	return op.Outcome.Created, nil
}

// report tells of the execution that has ended.
func (r *run) report() {
	if r.engine.params.Finished == nil {
		return
	}
	t := r.trace()
	t.redact(r.program)
	r.engine.params.Finished(t)
}

// release gives the execution back to the queue.
func (r *run) release() {
	if err := r.flush(); err != nil && !errors.Is(err, errLost) {
		r.engine.params.Log.Warn("what an execution has done since it was last written is done again", "execution", r.x.ID, "error", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := r.engine.params.Store.Release(ctx, r.number, r.lease); err != nil {
		r.engine.params.Log.Warn("an execution was not given back to the queue; the next start does it", "execution", r.x.ID, "error", err)
	}
	r.x.Status, r.x.Lease.Owner, r.x.FinishedAt = Queued, [16]byte{}, time.Time{}
	r.engine.hub.end(&r.x)
}

// releaseTimeout limits giving an execution back when the server stops.
const releaseTimeout = 5 * time.Second

// begin notes that a step begins: from now on the run has its price.
func (r *run) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = true
}

// used is what was used: the price of it, and tokens. A run that has ended
// before its first step began has used nothing.
func (r *run) used() (credit.Amount, model.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var used credit.Amount
	var usage model.Usage
	begun := r.started || r.x.Status == Succeeded || len(r.calls) > 0 // of a call that was interrupted nothing else may be known
	for _, s := range r.journal {
		used = atMost(used, s.Price)
	}
	for _, c := range r.calls {
		used = atMost(used, c.Price)
		usage = sumOf(usage, c.Usage)
	}
	if begun && r.program.Price != nil {
		used = atMost(used, r.program.Price.PerRun)
	}
	return used, usage
}

// atMost is the sum of two amounts, and at most the largest amount there is:
// what providers count may be anything.
func atMost(a, b credit.Amount) credit.Amount { return min(a, credit.MaxAmount-b) + b }

// maxTokens is how many tokens are counted at most.
const maxTokens = 1 << 52

// sumOf is the sum of two usages.
func sumOf(a, b model.Usage) model.Usage { return plausible(plausible(a).Add(plausible(b))) }

// plausible is a usage that can be kept.
func plausible(u model.Usage) model.Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.Cached, &u.Reasoning} {
		*n = max(0, min(*n, maxTokens))
	}
	return u
}

// lastCall is the latest call of a step, nil if there is none.
func (r *run) lastCall(at Place) *Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range slices.Backward(r.begun) {
		if c := r.calls[id]; c.Place == at {
			return c
		}
	}
	return nil
}

// pause waits before a call is repeated. It returns why there is no repeat.
func (r *run) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.engine.draining.Done():
	case <-ctx.Done():
	}
	return r.mayBegin(ctx)
}

// unanswered are the calls that have not been answered, and will not be.
func (r *run) unanswered() []*Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Call
	for _, id := range r.begun {
		if c := r.calls[id]; c.Status == CallRunning {
			c.Status, c.FinishedAt, c.Message = CallUnknown, r.x.FinishedAt, "it was interrupted"
			list = append(list, c)
		}
	}
	return list
}
