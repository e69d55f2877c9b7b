package api

// Error is the body of every answer that is a refusal.
type Error struct {
	Error ErrorBody `json:"error"`
}

// ErrorBody says what was refused and why.
type ErrorBody struct {
	Code    Code   `json:"code"       doc:"The kind of refusal. It is never renamed."`
	Message string `json:"message"    doc:"For a person to read; it may change."`
	// RequestID is the X-Request-Id of the answer.
	RequestID string       `json:"request_id" doc:"The X-Request-Id of the answer."`
	Details   ErrorDetails `json:"details"`
}

// ErrorDetails are what a program can go by. Members that are not listed may
// be added.
type ErrorDetails struct {
	_           struct{}    `additionalProperties:"true"`
	Retryable   bool        `json:"retryable"              doc:"Whether the same request with the same key can succeed if it is simply sent again."`
	Field       string      `json:"field,omitempty"        doc:"The member or parameter at fault, like steps[0].event."`
	Header      string      `json:"header,omitempty"       doc:"The header at fault."`
	Limit       int         `json:"limit_bytes,omitempty"  doc:"The most that a body may hold, inflated."`
	Applied     any         `json:"applied,omitempty"      doc:"Whether the change was made: true, false or \"unknown\"."`
	Key         KeyFate     `json:"key,omitempty"          doc:"What became of the Idempotency-Key, where that is known."                           enum:"free,taken"`
	Differs     []string    `json:"differs,omitempty"      doc:"What differs from the request that first used the key."`
	SameJSON    bool        `json:"same_json,omitempty"    doc:"true if only the spelling of the body differs."`
	Unit        *Unit       `json:"unit,omitempty"         doc:"The work that the key names."`
	ExecutionID string      `json:"execution_id,omitempty" doc:"The execution that has failed, or that the hold belongs to."                        format:"uuid"`
	CreditType  string      `json:"credit_type,omitempty"  doc:"The credits of which there are not enough."`
	Balance     *Balance    `json:"balance,omitempty"      doc:"What the customer has of them."`
	Resource    Resource    `json:"resource,omitempty"     doc:"What of the organization's quota is used up."                                       enum:"events,storage"`
	Quota       int64       `json:"limit,omitempty"        doc:"How much of it the plan allows in a month: events, or bytes."`
	ResetsAt    string      `json:"resets_at,omitempty"    doc:"When the next month begins."                                                        format:"date-time"`
	Hint        string      `json:"hint,omitempty"         doc:"What to narrow."`
	Issues      []FlowIssue `json:"issues,omitempty"       doc:"What is wrong with the definition of a flow, at most 50."`
	MoreIssues  int         `json:"more_issues,omitempty"  doc:"How many issues are not listed."`
}

// Status is the body of an answer that says yes.
type Status struct {
	Status string `json:"status" enum:"ok"`
}
