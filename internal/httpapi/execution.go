package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
	"github.com/actionpulse/actionpulse/internal/model"
)

func executionParam() param { return idParam("execution_id", "The id of the execution.") }

// executionID is the id in the path. What has not the form of one names
// nothing.
func (x *exchange) executionID() (string, error) {
	executionID := x.r.PathValue("execution_id")
	if !id.Valid(executionID) {
		return "", fault.New(api.CodeNotFound, "there is no such execution")
	}
	return executionID, nil
}

var getExecutionOperation = operation{
	id: "getExecution", tag: tagExecutions, summary: "Get an execution",
	params:  []param{executionParam()},
	replies: replyOK("The execution as it is now.", api.ExecutionAnswer{}),
	errors:  codes(api.CodeNotFound),
}

func (s *service) getExecution(x *exchange) (answer, error) {
	executionID, err := x.executionID()
	if err != nil {
		return answer{}, err
	}
	found, err := s.Executions.Get(x.r.Context(), x.caller.ProjectID, executionID)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, executionAnswer(&found))
}

var listExecutionsOperation = operation{
	id: "listExecutions", tag: tagExecutions, summary: "List executions, latest first",
	params: pageParams(
		textParam("idempotency_key", "Only the execution that this Idempotency-Key names, percent-encoded."),
		textParam("flow", "Only executions of this flow."), textParam("customer", "Only executions that this customer pays for."),
		textParam("status", "Only executions in this state: queued, running, succeeded, failed or cancelled."),
	),
	replies: replyOK("A page of executions; it ends before the limit when their outputs are large.", api.List[api.Execution]{}),
	errors:  codes(api.CodeValidationFailed),
}

func (s *service) listExecutions(x *exchange) (answer, error) {
	p, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	q := execution.ListQuery{ProjectID: x.caller.ProjectID, Before: p.after, Limit: p.limit}
	for name, to := range map[string]*string{
		"idempotency_key": &q.Key, "flow": &q.Flow, "customer": &q.Customer, "status": (*string)(&q.Status),
	} {
		if *to, err = x.text(name); err != nil {
			return answer{}, err
		}
	}
	if q.Status != "" && q.Status != execution.Queued && q.Status != execution.Running && !q.Status.Ended() {
		return answer{}, fault.Field("status", "status is queued, running, succeeded, failed or cancelled")
	}
	if strings.ContainsRune(q.Key+q.Flow+q.Customer, 0) { // names nothing, and not every store can look for it
		return listAnswer([]api.Execution{}, "")
	}
	list, more, err := s.Executions.List(x.r.Context(), q)
	if err != nil {
		return answer{}, err
	}
	items, next := make([]api.Execution, len(list)), ""
	for i := range list {
		items[i] = executionOf(&list[i])
	}
	if more {
		next = list[len(list)-1].ID
	}
	return listAnswer(items, next)
}

var cancelExecutionOperation = operation{
	id: "cancelExecution", tag: tagExecutions, summary: "Cancel an execution",
	description: "One that runs ends as soon as its process sees it, its call is cut, and what it has used is charged; the answer may come before that. " +
		"One that has ended stays as it is: a repeat does no harm.",
	params:  []param{executionParam()},
	replies: replyOK("The execution as it is now.", api.ExecutionAnswer{}),
	errors:  codes(api.CodeNotFound),
}

func (s *service) cancelExecution(x *exchange) (answer, error) {
	executionID, err := x.executionID()
	if err != nil {
		return answer{}, err
	}
	now, err := s.Executions.Cancel(x.r.Context(), x.caller.ProjectID, executionID)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, executionAnswer(&now))
}

var listOperationsOperation = operation{
	id: "listOperations", tag: tagExecutions, summary: "List operations, latest first",
	description: "The requests that ran flows, and the model calls that they made, each attempt by itself.",
	params:      pageParams(textParam("execution_id", "Only the operations of this execution.")),
	replies:     replyOK("A page of operations.", api.List[api.Operation]{}),
	errors:      codes(api.CodeValidationFailed),
}

func (s *service) listOperations(x *exchange) (answer, error) {
	p, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	q := execution.OperationQuery{ProjectID: x.caller.ProjectID, Before: p.after, Limit: p.limit + 1}
	if q.ExecutionID, err = x.text("execution_id"); err != nil {
		return answer{}, err
	}
	if q.ExecutionID != "" && !id.Valid(q.ExecutionID) {
		return listAnswer([]api.Operation{}, "")
	}
	all, err := s.Executions.Operations(x.r.Context(), q)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, operationOf, func(o *execution.Operation) string { return o.ID })
}

func operationOf(o *execution.Operation) api.Operation {
	return api.Operation{
		ID: o.ID, ExecutionID: o.ExecutionID, Type: o.Type, Step: api.OptionalText(o.Step), Model: api.OptionalText(o.Model), Status: o.Status,
		Usage: usageOf(o.Usage), Charged: o.Charged.String(), Attempt: o.Attempt,
		StartedAt: api.TimeText(o.StartedAt), FinishedAt: api.OptionalTime(o.FinishedAt),
	}
}

var listCostsOperation = operation{
	id: "listCosts", tag: tagExecutions, summary: "Sum up what executions have used",
	description: "Executions that have ended from one time until before another, in groups. Days are those of UTC.",
	params: []param{
		textParam("from", "The beginning; 30 days before the end if absent."), textParam("to", "The end, not included; now if absent."),
		textParam("by", "By what: any of customer, flow, model and day, separated by commas; nothing if absent."),
	},
	replies: replyOK("The groups.", api.Costs{}),
	errors:  codes(api.CodeValidationFailed),
}

// costSpan is how long a time costs are summed up over if nobody says.
const costSpan = 30 * 24 * time.Hour

func (s *service) listCosts(x *exchange) (answer, error) {
	q := execution.CostQuery{ProjectID: x.caller.ProjectID}
	var err error
	if q.To, err = x.time("to"); err != nil {
		return answer{}, err
	}
	if q.To.IsZero() {
		q.To = s.Now()
	}
	if q.From, err = x.time("from"); err != nil {
		return answer{}, err
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-costSpan)
	}
	by, err := x.text("by")
	if err != nil {
		return answer{}, err
	}
	if q.By, err = costGroup(by); err != nil {
		return answer{}, err
	}
	all, err := s.Executions.Costs(x.r.Context(), q)
	if err != nil {
		return answer{}, err
	}
	out := api.Costs{From: api.TimeText(q.From), To: api.TimeText(q.To), Items: make([]api.Cost, len(all))}
	for i := range all {
		out.Items[i] = costOf(&all[i], q.By)
	}
	return jsonAnswer(http.StatusOK, out)
}

func costGroup(text string) (execution.CostGroup, error) {
	var g execution.CostGroup
	known := map[string]*bool{"customer": &g.Customer, "flow": &g.Flow, "model": &g.Model, "day": &g.Day}
	for name := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		asked, ok := known[name]
		if !ok {
			return g, fault.Field("by", "by holds customer, flow, model and day, separated by commas")
		}
		*asked = true
	}
	return g, nil
}

func costOf(c *execution.Cost, by execution.CostGroup) api.Cost {
	out := api.Cost{
		CreditType: api.OptionalText(c.CreditType), Executions: c.Executions, Usage: usageOf(c.Usage), Charged: c.Charged.String(),
	}
	if by.Customer {
		out.Customer = new(c.Customer)
	}
	if by.Flow {
		out.Flow = new(c.Flow)
	}
	if by.Model {
		out.Model, out.Calls = new(c.Model), new(c.Calls)
	}
	if by.Day {
		out.Day = new(c.Day.Format(time.DateOnly))
	}
	return out
}

func usageOf(u model.Usage) api.Usage {
	return api.Usage{InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.Cached, ReasoningTokens: u.Reasoning}
}
