package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// RunBlock implements step.Runner for the steps of a flow and, by [block], for
// those within them.
func (r *run) RunBlock(ctx context.Context, b *step.Block, scope *template.Scope, iteration string) error {
	for _, s := range b.Steps {
		if err := r.runStep(ctx, s, scope, iteration); err != nil {
			return err
		}
	}
	return nil
}

// block runs the steps within a step: it knows in which iterations that is.
type block struct {
	run   *run
	outer string
}

// RunBlock implements step.Runner.
func (b block) RunBlock(ctx context.Context, inner *step.Block, scope *template.Scope, iteration string) error {
	switch {
	case iteration == "":
		iteration = b.outer
	case b.outer != "":
		iteration = b.outer + "." + iteration
	}
	return b.run.RunBlock(ctx, inner, scope, iteration)
}

// runStep runs a step, or takes what the journal says came of it.
func (r *run) runStep(ctx context.Context, s *step.Step, scope *template.Scope, iteration string) error {
	at := Place{Step: s.ID, Iteration: iteration}
	before := r.known(at)
	switch {
	case before == nil || before.State == StepStarted:
	case before.State == StepFailed: // the server stopped before the execution had ended
		return &step.Error{Code: before.Failure.Code, Message: before.Failure.Message}
	default:
		return setStep(scope, before)
	}
	one := &stepRun{run: r, step: s, at: at, scope: scope, before: before, started: r.engine.params.now()}
	if one.interrupted() && s.OnInterrupt != step.Retry { // whether its time is over or not
		return one.failed(unknown(s.ID))
	}
	if err := r.mayBegin(ctx); err != nil {
		return err
	}
	if before == nil && s.If != nil {
		runs, err := step.Holds(s.If, scope)
		if err != nil {
			return one.failed(step.Failed(err, s.ID+".if: "+messageOf(err)))
		}
		if !runs {
			now := r.engine.params.now()
			skipped := &Step{Place: at, Type: s.Type, State: StepSkipped, Attempt: 1, StartedAt: now, FinishedAt: now}
			r.note(skipped, nil)
			return setStep(scope, skipped)
		}
	}
	row, err := one.do(ctx)
	if err != nil {
		return err
	}
	return setStep(scope, row)
}

// mayBegin says why no step may begin.
func (r *run) mayBegin(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.engine.isStopping() {
		return errStopping
	}
	return nil
}

// messageOf is what the owner of the flow is told.
func messageOf(err error) string {
	if failure, ok := errors.AsType[*step.Error](err); ok {
		return failure.Message
	}
	return err.Error()
}

// setStep shows later steps what came of one.
func setStep(scope *template.Scope, row *Step) error {
	if row.State == StepSkipped {
		scope.SetStep(row.Step, nil)
		return nil
	}
	value, err := template.Decode(row.Output)
	if err != nil {
		return fmt.Errorf("read the output of step %s: %w", row.Step, err)
	}
	members, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("the output of step %s is no object", row.Step)
	}
	scope.SetStep(row.Step, members)
	return nil
}

// stepRun is one step being run in one iteration.
type stepRun struct {
	run   *run
	step  *step.Step
	at    Place
	scope *template.Scope
	// before is what the journal says of it: that it was begun, or nil.
	before *Step
	call   *Call
	// started is when it was begun first.
	started time.Time
}

// failed notes that the step has failed for good.
func (o *stepRun) failed(reason *step.Error) error {
	r := o.run
	reason = &step.Error{Code: reason.Code, Message: blankText(reason.Message, r.secrets(nil, nil)), Outcome: reason.Outcome, Err: reason.Err}
	row := Step{Place: o.at, Type: o.step.Type, Attempt: 1, StartedAt: o.started}
	if before := r.known(o.at); before != nil {
		row = *before
	}
	row.State, row.FinishedAt, row.Failure = StepFailed, r.engine.params.now(), &Failure{Code: reason.Code, Message: reason.Message}
	r.note(&row, nil)
	return reason
}

// interrupted says that the step has made a call of which nobody knows what
// became.
func (o *stepRun) interrupted() bool {
	if o.before == nil || !o.calls() {
		return false
	}
	last := o.run.lastCall(o.at)
	return last == nil || last.Status != CallFailed // else it was answered, and only the repeat was left out
}

// do runs the step, if need be several times.
func (o *stepRun) do(ctx context.Context) (*Step, error) {
	attempt := 1
	if o.before != nil {
		attempt, o.started = o.before.Attempt, o.before.StartedAt
		if o.calls() {
			attempt++
		}
	}
	o.run.begin()
	outer := ctx
	if o.calls() {
		// A call that is under way is not cut because a neighbour has failed:
		// it would be paid for all the same.
		ctx = o.run.ctx
	}
	for first := attempt; ; attempt++ {
		if err := o.begin(attempt); err != nil {
			return nil, err
		}
		result, err := o.attempt(ctx, attempt)
		if err == nil {
			return o.finished(attempt, &result)
		}
		if isReason(err) && !o.calls() { // of a step within
			return nil, err
		}
		o.answered(err)
		if ctx.Err() != nil { // its time is over, or it is to end for another reason
			return nil, o.cut(ctx, err)
		}
		wait, again := o.again(err, attempt-first)
		if !again {
			return nil, o.failed(final(o.step, err))
		}
		if err := o.run.flush(); err != nil { // it was answered, and is not interrupted now
			return nil, err
		}
		if reason := o.run.pause(outer, wait); reason != nil {
			if !errors.Is(reason, errStopping) && !errors.Is(reason, errLost) { // who goes on repeats it
				_ = o.failed(final(o.step, err))
			}
			return nil, reason
		}
	}
}

func (o *stepRun) calls() bool { return o.step.Program.Effect() == step.Calls }

// begin journals that the step begins, before it can have an effect.
func (o *stepRun) begin(attempt int) error {
	effect := o.step.Program.Effect()
	if effect == step.Pure || effect == step.Timed && o.before != nil {
		return nil
	}
	row := &Step{Place: o.at, Type: o.step.Type, State: StepStarted, Attempt: attempt, StartedAt: o.started}
	if effect == step.Calls {
		callID, err := o.run.engine.params.newID()
		if err != nil {
			return err
		}
		o.call = &Call{
			Place: o.at, ID: callID, ExecutionID: o.run.x.ID, Attempt: attempt, Kind: o.step.Type, Status: CallRunning,
			DerivedKey: o.key(), StartedAt: o.run.engine.params.now(),
		}
		if p, ok := o.step.Program.(step.Addressed); ok { // a call that is interrupted says at least whom it was for
			provider, name := p.Callee(o.scope)
			o.call.Provider, o.call.Model = storable(provider), storable(name)
		}
	}
	o.run.note(row, o.call)
	if err := o.run.flush(); err != nil {
		return err
	}
	crash.Point("step.begun")
	return nil
}

// key is the derived Idempotency-Key: the same on every attempt.
func (o *stepRun) key() string {
	key := o.run.x.ID + ":" + o.at.Step
	if o.at.Iteration != "" {
		key += ":" + o.at.Iteration
	}
	return key
}

// attempt runs the step once. A panic fails it, and not the server.
func (o *stepRun) attempt(ctx context.Context, attempt int) (result step.Result, err error) {
	if o.step.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.step.Timeout, errStepTimeout)
		defer cancel()
	}
	if o.step.Program.Effect() == step.Timed { // it goes on elsewhere from where it is
		drained, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(o.run.engine.draining, func() { cancel(errStopping) })()
		ctx = drained
	}
	defer func() {
		if err != nil && !o.calls() && errors.Is(context.Cause(ctx), errStepTimeout) {
			err = step.Failed(err, fmt.Sprintf("it did not end within %v", o.step.Timeout))
		}
	}()
	defer func() {
		if value := recover(); value != nil {
			o.run.engine.params.Log.Error("a step has panicked", "execution", o.run.x.ID, "step", o.at.Step, "panic", value,
				"stack", string(debug.Stack()))
			err = &step.Error{Code: api.CodeStepFailed, Message: "the server failed in step " + o.at.Step, Outcome: step.Unknown}
		}
	}()
	return o.step.Program.Run(ctx, &step.Run{
		ProjectID: o.run.x.ProjectID, Scope: o.scope, Key: o.key(), Attempt: attempt, Started: o.started,
		Now: o.run.engine.params.Clock, Blocks: block{run: o.run, outer: o.at.Iteration},
		Emit: func(delta string) {
			o.run.engine.hub.tell(o.run.x.ID, Event{Type: "delta", Place: o.at, Delta: delta})
		},
	})
}

// finished journals the result of the step.
func (o *stepRun) finished(attempt int, result *step.Result) (*Step, error) {
	output, err := encodeValue(result.Value)
	if err != nil {
		return nil, o.failed(step.Failed(err, o.step.ID+": "+err.Error()))
	}
	now := o.run.engine.params.now()
	row := &Step{
		Place: o.at, Type: o.step.Type, State: StepFinished, Attempt: attempt, Output: output,
		Price: o.run.program.StepPrice(o.step.ID), StartedAt: o.started, FinishedAt: now,
	}
	called := result.Call
	if called == nil && o.call != nil {
		called = &step.Call{}
	}
	if called != nil {
		if err := o.describe(&Call{Status: CallSucceeded}, called, result.Value); err != nil {
			return nil, err
		}
	}
	if !o.run.mayGive(len(output)) {
		o.run.note(nil, o.call)
		return nil, o.failed(step.Failed(nil, fmt.Sprintf("the outputs of the steps together have more than %d MiB", maxOutputs>>20)))
	}
	o.run.note(row, o.call)
	if !o.calls() && !o.run.crowded() {
		return row, nil
	}
	crash.Point("step.answered")
	if err := o.run.flush(); err != nil {
		return nil, err
	}
	crash.Point("step.finished")
	return row, nil
}

func encodeValue(value map[string]any) (json.RawMessage, error) {
	if value == nil {
		value = map[string]any{}
	}
	return template.Encode(value)
}

// Delays before a call is repeated, unless the callee says how long.
const (
	retryDelay    = 500 * time.Millisecond
	retryMaxDelay = 30 * time.Second
)

// again says whether a call that has failed may be repeated, and after how
// long: one that has certainly not succeeded as often as the step allows, one of
// which that is not known only if the step says so.
func (o *stepRun) again(err error, repeats int) (time.Duration, bool) {
	failure, ok := errors.AsType[*step.Error](err)
	if !ok || !o.calls() || repeats >= o.step.Retries {
		return 0, false
	}
	switch failure.Outcome {
	case step.Unknown:
		if o.step.OnInterrupt != step.Retry {
			return 0, false
		}
	default:
		if !failure.Retryable {
			return 0, false
		}
	}
	if failure.After > 0 {
		return failure.After, true
	}
	return min(retryDelay<<min(repeats, 10), retryMaxDelay), true
}

// final is why a step fails for good.
func final(s *step.Step, err error) *step.Error {
	failure, ok := errors.AsType[*step.Error](err)
	switch {
	case !ok:
		return &step.Error{Code: api.CodeStepFailed, Message: "the server failed in step " + s.ID, Err: err}
	case failure.Outcome == step.Unknown && s.Program.Effect() == step.Calls:
		return unknown(s.ID)
	default:
		return &step.Error{Code: failure.Code, Message: s.ID + ": " + failure.Message, Err: err}
	}
}

// codeCancelled is what the trace says of a step that was cut because somebody
// has cancelled the execution. No request is answered with it.
const codeCancelled api.Code = "cancelled"

func unknown(id string) *step.Error {
	return &step.Error{
		Code: api.CodeOutcomeUnknown, Message: "the call of step " + id + " was interrupted, and nobody knows what it has done",
		Outcome: step.Unknown,
	}
}

// cut is why a step has ended when its context has. A call that was answered
// all the same has failed by its own fault; the execution ends by the context's.
func (o *stepRun) cut(ctx context.Context, err error) error {
	reason := context.Cause(ctx)
	if errors.Is(reason, errStopping) || errors.Is(reason, errLost) {
		return reason // the journal says that it was begun; whoever goes on decides
	}
	failure := final(o.step, err)
	if errors.Is(reason, errTimeout) {
		failure = &step.Error{Code: api.CodeExecutionTimeout, Message: "the time of the execution was over", Err: err}
	}
	if errors.Is(reason, errCancelled) {
		failure = &step.Error{Code: codeCancelled, Message: "the execution was cancelled", Err: err}
	}
	if o.calls() || o.call != nil {
		_ = o.failed(failure)
	}
	return reason
}
