package api

// TrackResponse is the 202 answer of POST /v1/track. Accepted counts every
// valid item, repeats included; Duplicates says how many of those were repeats.
type TrackResponse struct {
	Accepted   int         `json:"accepted"`
	Duplicates int         `json:"duplicates"`
	Rejected   []Rejection `json:"rejected"`
}

// Rejection is one item that was not accepted. Sending it again unchanged
// brings the same verdict.
type Rejection struct {
	// Index is the item's place in the request, from 0.
	Index int `json:"index"`
	// EventID echoes the item's event_id if it is a string of at most 64
	// characters.
	EventID *string    `json:"event_id"`
	Code    RejectCode `json:"code"`
	Message string     `json:"message"`
}

// RejectCode says why an item was rejected. The first fault found, in the
// order of the constants, is the one reported.
type RejectCode string

// The reasons to reject an item.
const (
	RejectInvalidEvent      RejectCode = "invalid_event"
	RejectInvalidEventID    RejectCode = "invalid_event_id"
	RejectMissingIdentity   RejectCode = "missing_identity"
	RejectInvalidAnonID     RejectCode = "invalid_anon_id"
	RejectInvalidUserID     RejectCode = "invalid_user_id"
	RejectInvalidSessionID  RejectCode = "invalid_session_id"
	RejectInvalidTimestamp  RejectCode = "invalid_timestamp"
	RejectInvalidProperties RejectCode = "invalid_properties"
	RejectInvalidContext    RejectCode = "invalid_context"
	RejectEventTooLarge     RejectCode = "event_too_large"
)

// IngestDebug is the answer of GET /api/v1/projects/{id}/ingest/debug: what
// intake saw lately. It is kept in memory and starts empty with the process.
type IngestDebug struct {
	// Accepted, Duplicate, Conflicting and Rejected hold the latest items of
	// each verdict, newest first.
	Accepted    []DebugItem `json:"accepted"`
	Duplicate   []DebugItem `json:"duplicate"`
	Conflicting []DebugItem `json:"conflicting"`
	Rejected    []DebugItem `json:"rejected"`
	// Rates counts items by key and SDK since the process started.
	Rates []DebugRate `json:"rates"`
}

// DebugItem is one item as intake judged it.
type DebugItem struct {
	ReceivedAt string     `json:"received_at"`
	Key        int64      `json:"key"`
	KeyKind    string     `json:"key_kind"`
	SDK        string     `json:"sdk"`
	EventID    *string    `json:"event_id"`
	Event      string     `json:"event,omitempty"`
	Code       RejectCode `json:"code,omitempty"`
	Message    string     `json:"message,omitempty"`
}

// DebugRate counts the items of one key and SDK.
type DebugRate struct {
	Key           int64   `json:"key"`
	KeyKind       string  `json:"key_kind"`
	SDK           string  `json:"sdk"`
	Accepted      int64   `json:"accepted"`
	Duplicates    int64   `json:"duplicates"`
	Conflicting   int64   `json:"conflicting"`
	Rejected      int64   `json:"rejected"`
	DuplicateRate float64 `json:"duplicate_rate"`
}
