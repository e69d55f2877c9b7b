package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
)

var getTraceOperation = operation{
	id: "getTrace", tag: tagExecutions, summary: "Get what an execution has done",
	description: "Its steps and their calls: models, tokens, prices, latencies, attempts and the derived keys that were sent.",
	params:      []param{executionParam()},
	replies:     replyOK("The trace so far.", api.Trace{}),
	errors:      codes(api.CodeNotFound),
}

func (s *service) getTrace(x *exchange) (answer, error) {
	executionID, err := x.executionID()
	if err != nil {
		return answer{}, err
	}
	t, err := s.Executions.Trace(x.r.Context(), x.caller.ProjectID, executionID)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, traceOf(&t))
}

// traceOf is a trace as it is sent: a tree.
func traceOf(t *execution.Trace) api.Trace {
	return api.Trace{Execution: executionOf(&t.Execution), Steps: tree(t.Roots())}
}

func tree(nodes []execution.Node) []api.TraceStep {
	out := make([]api.TraceStep, len(nodes))
	for i := range nodes {
		out[i] = stepOf(nodes[i].Step)
		for k := range nodes[i].Calls {
			out[i].Calls = append(out[i].Calls, callOf(nodes[i].Calls[k]))
		}
		out[i].Steps = tree(nodes[i].Inner)
	}
	return out
}

func stepOf(s *execution.Step) api.TraceStep {
	return api.TraceStep{
		Step: s.Step, Iteration: s.Iteration, Type: s.Type, Status: string(s.State), Attempt: s.Attempt, Output: s.Output,
		Error: failureOf(s.Failure), Price: s.Price.String(), StartedAt: api.TimeText(s.StartedAt), FinishedAt: api.OptionalTime(s.FinishedAt),
		DurationMS: tookMS(s.StartedAt, s.FinishedAt), Calls: []api.TraceCall{}, Steps: []api.TraceStep{},
	}
}

func callOf(c *execution.Call) api.TraceCall {
	out := api.TraceCall{
		ID: c.ID, Type: c.Kind, Status: string(c.Status), Attempt: c.Attempt, Provider: api.OptionalText(c.Provider), Model: api.OptionalText(c.Model),
		Usage: usageOf(c.Usage), Price: c.Price.String(), DerivedKey: c.DerivedKey, ProviderRequestID: api.OptionalText(c.ProviderRequestID),
		Request: c.Request, Response: c.Response, Message: api.OptionalText(c.Message),
		StartedAt: api.TimeText(c.StartedAt), FinishedAt: api.OptionalTime(c.FinishedAt), LatencyMS: tookMS(c.StartedAt, c.FinishedAt),
	}
	if c.HTTPStatus != 0 {
		out.HTTPStatus = new(c.HTTPStatus)
	}
	return out
}

func tookMS(from, to time.Time) *int64 {
	if to.IsZero() {
		return nil
	}
	return new(to.Sub(from).Milliseconds())
}

var followExecutionOperation = operation{
	id: "followExecution", tag: tagExecutions, summary: "Follow an execution",
	description: "Server-sent events: execution (as in single answers) at once, whenever its state changes and at its end; " +
		"step (as in a trace) when one begins or ends; delta ({step, iteration, text}) for parts of what a streaming model says. " +
		"After the last execution the stream ends. Events may be left out when the reader is slow; the state at the end never is. " +
		"What was missed is in the trace.",
	params:  []param{executionParam()},
	replies: []reply{{status: http.StatusOK, doc: "The events.", body: "", kind: "text/event-stream"}},
	errors:  codes(api.CodeNotFound),
}

func (s *service) followExecution(x *exchange) (answer, error) {
	executionID, err := x.executionID()
	if err != nil {
		return answer{}, err
	}
	if _, err := s.Executions.Get(x.r.Context(), x.caller.ProjectID, executionID); err != nil {
		return answer{}, err
	}
	x.w.Header()["Cache-Control"] = []string{"no-store"}
	return answer{status: http.StatusOK, contentType: "text/event-stream", stream: func(w io.Writer) error {
		return s.Executions.Follow(x.r.Context(), x.caller.ProjectID, executionID, func(e execution.Event) error {
			return sendEvent(x, w, e)
		})
	}}, nil
}

// sendEvent writes one event. An event without a type keeps the connection
// alive.
func sendEvent(x *exchange, w io.Writer, e execution.Event) error {
	connection := http.NewResponseController(x.w)
	if err := connection.SetWriteDeadline(time.Now().Add(writeSlack)); err != nil {
		return clientGone(err)
	}
	var text strings.Builder
	if e.Type == "" {
		text.WriteString(":\n\n")
	} else {
		data, err := json.Marshal(eventOf(&e))
		if err != nil {
			return err
		}
		text.WriteString("event: " + e.Type + "\ndata: ")
		text.Write(data)
		text.WriteString("\n\n")
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return clientGone(err)
	}
	if err := connection.Flush(); err != nil {
		return clientGone(err)
	}
	return nil
}

// eventOf is what an event says.
func eventOf(e *execution.Event) any {
	switch e.Type {
	case "execution":
		return executionAnswer(e.Execution)
	case "step":
		return stepOf(e.Step)
	default:
		return map[string]string{"step": e.Place.Step, "iteration": e.Place.Iteration, "text": e.Delta}
	}
}
