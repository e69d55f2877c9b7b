package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Executions runs flows and tells of runs. The errors are described where
// execution.Service has these methods.
type Executions interface {
	Execute(ctx context.Context, p execution.ExecuteParams) (execution.Executed, error)
	Get(ctx context.Context, projectID, executionID string) (execution.Execution, error)
	List(ctx context.Context, q execution.ListQuery) (list []execution.Execution, more bool, err error)
	Cancel(ctx context.Context, projectID, executionID string) (execution.Execution, error)
	Trace(ctx context.Context, projectID, executionID string) (execution.Trace, error)
	Follow(ctx context.Context, projectID, executionID string, tell func(execution.Event) error) error
	Operations(ctx context.Context, q execution.OperationQuery) ([]execution.Operation, error)
	Costs(ctx context.Context, q execution.CostQuery) ([]execution.Cost, error)
}

// askAgain is the Retry-After of an execution that has not ended.
const askAgain = 1

var executeOperation = operation{
	id: "execute", tag: tagExecutions, summary: "Run a flow, once for each Idempotency-Key",
	description: "The key is taken when the execution is made, together with the hold of what it may cost; what is refused before that leaves it free. " +
		"A repeat with the same bytes gets the execution as it is now, whether it has succeeded, failed or still runs, and never runs anything. " +
		"The run goes on when the client leaves. A repeat of a synchronous execution waits for its end for 30 seconds, " +
		"or as long as Prefer: wait=N says, at most 60.",
	params: []param{{
		in: "header", name: "Prefer", doc: "wait=N: for how many seconds to wait for the end of a synchronous execution. The first request waits until the end if it is absent.",
		schema: huma.Schema{Type: huma.TypeString},
	}},
	request: api.ExecuteRequest{},
	replies: []reply{
		{status: http.StatusOK, doc: "The execution has succeeded; or this is a repeat, and it is as it is now.", body: api.ExecutionAnswer{}, replayed: true},
		{status: http.StatusAccepted, doc: "The execution is queued, or has not ended within the time that Prefer allows.", body: api.ExecutionAnswer{}},
	},
	errors: codes(api.CodeIdempotencyKeyRequired, api.CodeIdempotencyConflict, api.CodeInvalidRequest, api.CodeFlowNotFound,
		api.CodeCustomerNotFound, api.CodeInsufficientCredits, api.CodeInvalidFlowInput, api.CodeModelError, api.CodeStepFailed,
		api.CodeOutcomeUnknown, api.CodeExecutionTimeout),
}

// execute runs a flow, or says what became of the run that has the key. Whoever
// waits for the end does not hold the memory of a body meanwhile, which others
// need.
func (s *service) execute(x *exchange) (answer, error) {
	wait, err := preferredWait(x.r.Header)
	if err != nil {
		return answer{}, err
	}
	if err := http.NewResponseController(x.w).SetWriteDeadline(time.Time{}); err != nil {
		return answer{}, clientGone(err)
	}
	done, err := s.Executions.Execute(x.r.Context(), execution.ExecuteParams{
		ProjectID: x.caller.ProjectID, Key: x.key, Body: x.body.data, Wait: wait,
		Decode: func() (execution.Request, error) { return executeRequest(x) },
		Free:   x.free, Read: x.dropBody,
	})
	if err := http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(writeSlack)); err != nil {
		return answer{}, clientGone(err)
	}
	if err != nil {
		return answer{}, s.settleWork(x, err)
	}
	x.keyState = api.KeyTaken
	if !done.Execution.Status.Ended() {
		x.w.Header()["Retry-After"] = []string{strconv.Itoa(askAgain)}
	}
	if done.Replayed {
		x.w.Header()[idempotency.Replayed] = []string{"true"}
		return jsonAnswer(http.StatusOK, executionAnswer(&done.Execution))
	}
	switch done.Execution.Status {
	case execution.Succeeded, execution.Cancelled:
		return jsonAnswer(http.StatusOK, executionAnswer(&done.Execution))
	case execution.Failed:
		f := done.Execution.Failure
		return answer{}, fault.New(f.Code, "%s", f.Message).With("execution_id", done.Execution.ID)
	default:
		return jsonAnswer(http.StatusAccepted, executionAnswer(&done.Execution))
	}
}

// executeRequest reads the body of execute.
func executeRequest(x *exchange) (execution.Request, error) {
	in, err := decode[api.ExecuteRequest](x)
	if err != nil {
		return execution.Request{}, err
	}
	r := execution.Request{Flow: in.Flow, Customer: textOf(in.Customer), Mode: execution.Sync}
	if in.Version != nil {
		r.Version = *in.Version
	}
	if textOf(in.ExecutionMode) == string(execution.Async) {
		r.Mode = execution.Async
	}
	if in.Customer != nil && r.Customer == "" {
		return r, fault.New(api.CodeInvalidRequest, "customer must not be empty").With("field", "customer")
	}
	if r.Input, err = json.Marshal(in.Input); err != nil {
		return r, fault.Wrap(api.CodeInternal, err, "the server failed")
	}
	if in.Context != nil {
		if r.Context, err = json.Marshal(in.Context); err != nil {
			return r, fault.Wrap(api.CodeInternal, err, "the server failed")
		}
	}
	return r, nil
}

// preferredWait reads Prefer: wait=N; nil if it does not say. What else is
// preferred is ignored, as RFC 7240 demands.
func preferredWait(h http.Header) (*time.Duration, error) {
	for _, line := range h.Values("Prefer") {
		for one := range strings.SplitSeq(line, ",") {
			one, _, _ = strings.Cut(one, ";")
			name, value, _ := strings.Cut(one, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err != nil {
				return nil, nil //nolint:nilnil // a preference that cannot be read is none
			}
			return new(min(time.Duration(seconds)*time.Second, execution.MaxWait)), nil
		}
	}
	return nil, nil //nolint:nilnil // no preference is no error
}

// executionAnswer is an execution as it is sent.
func executionAnswer(x *execution.Execution) api.ExecutionAnswer {
	return api.ExecutionAnswer{Execution: executionOf(x)}
}

func executionOf(x *execution.Execution) api.Execution {
	out := api.Execution{
		ID: x.ID, Flow: x.Flow, Version: x.Version, Customer: api.OptionalText(x.Customer), Status: string(x.Status),
		Output: x.Output, Error: failureOf(x.Failure), Usage: usageOf(x.Usage), Charged: x.Charged.String(), Unbilled: x.Unbilled.String(),
		IdempotencyKey: x.Key, CreatedAt: api.TimeText(x.CreatedAt), StartedAt: api.OptionalTime(x.StartedAt), FinishedAt: api.OptionalTime(x.FinishedAt),
	}
	return out
}

func failureOf(f *execution.Failure) *api.ExecutionError {
	if f == nil {
		return nil
	}
	return &api.ExecutionError{Code: string(f.Code), Message: f.Message}
}
