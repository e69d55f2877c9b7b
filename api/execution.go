package api

import "encoding/json"

// ExecuteRequest asks for a run of a flow.
type ExecuteRequest struct {
	Flow          string                     `json:"flow"                     doc:"The slug of the flow." minLength:"1" maxLength:"64"`
	Version       *int64                     `json:"version,omitempty"        doc:"The version to run; the pinned one if absent, else the latest." minimum:"1"`
	Customer      *string                    `json:"customer,omitempty"       doc:"Your own id of the customer whose credits pay; required by a flow with a price."`
	Input         map[string]json.RawMessage `json:"input"                    doc:"What the flow is given; it must fit its input schema."`
	Context       map[string]json.RawMessage `json:"context,omitempty"        doc:"What else the flow's expressions see as context."`
	ExecutionMode *string                    `json:"execution_mode,omitempty" doc:"sync if absent: the answer comes when the execution has ended." enum:"sync,async"`
}

// Execution is one run of a flow.
type Execution struct {
	ID             string          `json:"id"              format:"uuid"`
	Flow           string          `json:"flow"`
	Version        int64           `json:"version"`
	Customer       *string         `json:"customer"`
	Status         string          `json:"status"          enum:"queued,running,succeeded,failed,cancelled"`
	Output         json.RawMessage `json:"output"          doc:"What the flow gives out; null until it has succeeded."`
	Error          *ExecutionError `json:"error"           doc:"Why it has failed; null otherwise."`
	Usage          Usage           `json:"usage"`
	Charged        string          `json:"charged"         doc:"What was taken from the customer's credits."`
	Unbilled       string          `json:"unbilled"        doc:"What was used beyond what was held, and was not taken."`
	IdempotencyKey string          `json:"idempotency_key"`
	CreatedAt      string          `json:"created_at"      format:"date-time"`
	StartedAt      *string         `json:"started_at"      format:"date-time"`
	FinishedAt     *string         `json:"finished_at"     format:"date-time"`
}

// ExecutionError says why an execution or a step has failed.
type ExecutionError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Usage counts tokens as the providers of the models have counted them.
type Usage struct {
	InputTokens     int64 `json:"input_tokens"     doc:"Those from a cache included."`
	OutputTokens    int64 `json:"output_tokens"    doc:"Those of reasoning included."`
	CachedTokens    int64 `json:"cached_tokens"`
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// ExecutionAnswer is an execution as it is now.
type ExecutionAnswer struct {
	Execution Execution `json:"execution"`
}

// Trace is what an execution has done.
type Trace struct {
	Execution Execution   `json:"execution"`
	Steps     []TraceStep `json:"steps"     doc:"In the order of their start; steps within another are within it."`
}

// TraceStep is one run of a step.
type TraceStep struct {
	Step       string          `json:"step"`
	Iteration  string          `json:"iteration"   doc:"Empty, or the numbers of the iterations that it is in, from the outside: 3 or 3.0."`
	Type       string          `json:"type"`
	Status     string          `json:"status"      enum:"started,finished,skipped,failed"`
	Attempt    int             `json:"attempt"`
	Output     json.RawMessage `json:"output"      doc:"What later steps see of it."`
	Error      *ExecutionError `json:"error"      `
	Price      string          `json:"price"       doc:"What this run of the step costs, without its calls."`
	StartedAt  string          `json:"started_at"  format:"date-time"`
	FinishedAt *string         `json:"finished_at" format:"date-time"`
	DurationMS *int64          `json:"duration_ms"`
	Calls      []TraceCall     `json:"calls"       doc:"Each attempt."`
	Steps      []TraceStep     `json:"steps"       doc:"The steps within it."`
}

// TraceCall is one attempt to call a model or a service.
type TraceCall struct {
	ID                string          `json:"id"                  format:"uuid"`
	Type              string          `json:"type"                enum:"model,http"`
	Status            string          `json:"status"              enum:"running,succeeded,failed,unknown"`
	Attempt           int             `json:"attempt"`
	Provider          *string         `json:"provider"`
	Model             *string         `json:"model"`
	HTTPStatus        *int            `json:"http_status"         doc:"null if there was no answer."`
	Usage             Usage           `json:"usage"`
	Price             string          `json:"price"`
	DerivedKey        string          `json:"derived_key"         doc:"The Idempotency-Key that was sent: the same on every attempt."`
	ProviderRequestID *string         `json:"provider_request_id"`
	Request           json.RawMessage `json:"request"             doc:"What was sent, while it is kept."`
	Response          json.RawMessage `json:"response"            doc:"What came back, while it is kept."`
	Message           *string         `json:"message"             doc:"Why it has failed."`
	StartedAt         string          `json:"started_at"          format:"date-time"`
	FinishedAt        *string         `json:"finished_at"         format:"date-time"`
	LatencyMS         *int64          `json:"latency_ms"`
}

// Operation is a request that ran a flow, or a model call that it made.
type Operation struct {
	ID          string  `json:"id"           format:"uuid"`
	ExecutionID string  `json:"execution_id" format:"uuid"`
	Type        string  `json:"type"         enum:"execute,model"`
	Step        *string `json:"step"`
	Model       *string `json:"model"`
	Status      string  `json:"status"       doc:"The execution's or the call's."`
	Usage       Usage   `json:"usage"`
	Charged     string  `json:"charged"      doc:"What was taken for the execution, or what the call costs by the price rules."`
	Attempt     int     `json:"attempt"`
	StartedAt   string  `json:"started_at"   format:"date-time"`
	FinishedAt  *string `json:"finished_at"  format:"date-time"`
}

// Costs is what executions have used.
type Costs struct {
	From  string `json:"from"  format:"date-time"`
	To    string `json:"to"    format:"date-time"`
	Items []Cost `json:"items"`
}

// Cost is what a group of executions has used. It has the members that it was
// grouped by.
type Cost struct {
	CreditType *string `json:"credit_type"         doc:"In which credits was paid; null for flows without a price."`
	Customer   *string `json:"customer,omitempty"`
	Flow       *string `json:"flow,omitempty"`
	Model      *string `json:"model,omitempty"`
	Day        *string `json:"day,omitempty"       format:"date"`
	Executions int64   `json:"executions"`
	Calls      *int64  `json:"calls,omitempty"     doc:"Calls of the model, where that is a group."`
	Usage      Usage   `json:"usage"`
	Charged    string  `json:"charged"             doc:"What was taken; by model, what the calls cost by the price rules."`
}
