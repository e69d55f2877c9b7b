package actionpulsetest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/actionpulse/actionpulse/api"
)

// The states of executions.
const (
	statusQueued    = "queued"
	statusRunning   = "running"
	statusSucceeded = "succeeded"
	statusFailed    = "failed"
	statusCancelled = "cancelled"
)

// executions are the runs of flows, in the order in which they were made.
type executions struct {
	list []*execution
	byID map[string]*execution
}

// execution is one run of a flow.
type execution struct {
	wire  api.Execution
	flow  *flow
	input json.RawMessage
	async bool
	// invalid is why it cannot be run with its input.
	invalid error
	// price is what a run costs if nobody says otherwise, and hold what was set
	// aside for it, nil if nothing.
	price amount
	hold  *hold
	// done is closed when it has ended; stop ends its context, and is nil if it
	// has none.
	done chan struct{}
	stop func()
}

func newExecutions() executions { return executions{byID: map[string]*execution{}} }

func (l *executions) add(e *execution) {
	l.list = append(l.list, e)
	l.byID[e.wire.ID] = e
}

func (e *execution) ended() bool {
	return e.wire.Status != statusQueued && e.wire.Status != statusRunning
}

// Executions returns the runs of flows as they are now, in the order in which
// they were made.
func (s *Server) Executions() []api.Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []api.Execution
	for _, e := range s.runsOf.list {
		list = append(list, e.wire)
	}
	return list
}

// stopRuns ends the contexts of all runs.
func (s *Server) stopRuns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.runsOf.list {
		if e.stop != nil {
			e.stop()
		}
	}
}

func (s *Server) start(e *execution) {
	at := api.TimeText(s.time())
	e.wire.Status, e.wire.StartedAt = statusRunning, &at
}

// end notes what came of a run, unless it was cancelled meanwhile.
func (s *Server) end(e *execution, output any, price string, err error) {
	if e.ended() {
		return
	}
	used := e.price
	if price != "" {
		var ok bool
		if used, ok = parseAmount(price); !ok || used < 0 || used > 0 && e.hold == nil {
			s.t.Errorf("actionpulsetest: a run of %s costs %q: say an amount, and publish the flow with a price", e.wire.Flow, price)
			used = 0
		}
	}
	text, failed := marshal(output)
	if err == nil && failed != nil {
		s.t.Errorf("actionpulsetest: the output of %s is not JSON: %v", e.wire.Flow, failed)
		err = failed
	}
	if err == nil {
		e.wire.Output = text
		s.finish(e, statusSucceeded, used)
		return
	}
	code := api.CodeStepFailed
	if f, ok := errors.AsType[*FlowError](err); ok {
		code = f.Code
	}
	switch code { //nolint:exhaustive // no other code ends a run
	case api.CodeStepFailed, api.CodeModelError, api.CodeOutcomeUnknown, api.CodeExecutionTimeout:
	default:
		s.t.Errorf("actionpulsetest: a run of %s cannot fail with %s", e.wire.Flow, code)
		code = api.CodeStepFailed
	}
	e.wire.Error = &api.ExecutionError{Code: string(code), Message: err.Error()}
	s.finish(e, statusFailed, used)
}

// fail ends an execution that was never run.
func (s *Server) fail(e *execution, code api.Code, message string) {
	e.wire.Error = &api.ExecutionError{Code: string(code), Message: message}
	s.finish(e, statusFailed, 0)
}

// finish ends an execution and settles its hold: what was used is taken, never
// more than was held.
func (s *Server) finish(e *execution, status string, used amount) {
	at := api.TimeText(s.time())
	e.wire.Status, e.wire.FinishedAt = status, &at
	switch {
	case e.hold == nil:
	case used == 0:
		s.letGo(e.hold, holdReleased)
	default:
		charged := min(used, e.hold.amount)
		s.capture(e.hold, charged)
		e.wire.Charged, e.wire.Unbilled = charged.String(), (used - charged).String()
	}
	close(e.done)
}

// executionInPath refuses with not_found.
func (s *Server) executionInPath(x *exchange) (*execution, error) {
	if e := s.runsOf.byID[x.pathText("execution_id")]; e != nil {
		return e, nil
	}
	return nil, refuse(api.CodeNotFound, "there is no such execution")
}

func (s *Server) getExecution(x *exchange) (reply, error) {
	e, err := s.executionInPath(x)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, api.ExecutionAnswer{Execution: e.wire})
}

// cancelExecution ends an execution that has not ended. What a run costs that
// has begun is charged.
func (s *Server) cancelExecution(x *exchange) (reply, error) {
	e, err := s.executionInPath(x)
	if err != nil {
		return reply{}, err
	}
	switch e.wire.Status {
	case statusQueued:
		s.finish(e, statusCancelled, 0)
	case statusRunning:
		s.finish(e, statusCancelled, e.price)
		e.stop()
	}
	return jsonReply(http.StatusOK, api.ExecutionAnswer{Execution: e.wire})
}

// listExecutions lists executions, latest first.
func (s *Server) listExecutions(x *exchange) (reply, error) {
	p, err := x.page(isID)
	if err != nil {
		return reply{}, err
	}
	want := map[string]string{}
	for _, name := range []string{"idempotency_key", "flow", "customer", "status"} {
		if want[name], err = x.text(name); err != nil {
			return reply{}, err
		}
	}
	states := []string{"", statusQueued, statusRunning, statusSucceeded, statusFailed, statusCancelled}
	if !slices.Contains(states, want["status"]) {
		return reply{}, invalidField("status", "is queued, running, succeeded, failed or cancelled")
	}
	all := latestFirst(s.runsOf.list, func(e *execution) bool {
		has := map[string]string{
			"idempotency_key": e.wire.IdempotencyKey, "flow": e.wire.Flow, "customer": text0(e.wire.Customer), "status": e.wire.Status,
		}
		for name, value := range want {
			if value != "" && has[name] != value {
				return false
			}
		}
		return p.after == "" || e.wire.ID < p.after
	})
	return listReply(p, all, func(e *execution) api.Execution { return e.wire }, func(e *execution) string { return e.wire.ID })
}

// listOperations lists the requests that ran flows, latest first.
func (s *Server) listOperations(x *exchange) (reply, error) {
	p, err := x.page(isID)
	if err != nil {
		return reply{}, err
	}
	only, err := x.text("execution_id")
	if err != nil {
		return reply{}, err
	}
	all := latestFirst(s.runsOf.list, func(e *execution) bool {
		return (only == "" || e.wire.ID == only) && (p.after == "" || e.wire.ID < p.after)
	})
	return listReply(p, all, operationOf, func(e *execution) string { return e.wire.ID })
}

func operationOf(e *execution) api.Operation {
	started := e.wire.CreatedAt
	if e.wire.StartedAt != nil {
		started = *e.wire.StartedAt
	}
	return api.Operation{
		ID: e.wire.ID, ExecutionID: e.wire.ID, Type: "execute", Status: e.wire.Status, Charged: e.wire.Charged, Attempt: 1,
		StartedAt: started, FinishedAt: e.wire.FinishedAt,
	}
}
