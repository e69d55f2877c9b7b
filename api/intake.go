package api

// TrackRequest is the body of POST /v1/track. Members that are not listed are
// ignored, here and in its items.
type TrackRequest struct {
	_ struct{} `additionalProperties:"true"`
	// SentAt is when the client sent the request, by its own clock.
	SentAt     any         `json:"sent_at,omitempty" doc:"When the request was sent, by the client's clock: RFC 3339 or integer milliseconds since 1970. If that differs by more than 5 minutes from the server's, every ts is corrected by the difference."`
	Historical bool        `json:"historical,omitempty" doc:"Keeps any past ts and corrects none. Not with a browser token."`
	Events     []TrackItem `json:"events"               maxItems:"1000"                                                                             minItems:"1"`
}

// TrackItem is one event as it is sent.
type TrackItem struct {
	_          struct{}       `additionalProperties:"true"`
	EventID    *string        `json:"event_id,omitempty"   doc:"A UUID, the same on every attempt. Absent or null: the event is stored each time it is sent." format:"uuid"       nullable:"true"`
	Event      string         `json:"event"                doc:"The event's name."                                                                            maxLength:"200"     minLength:"1"`
	AnonID     string         `json:"anon_id,omitempty"    doc:"A device or browser. One of anon_id and user_id must be there."                               maxLength:"200"     minLength:"1"`
	UserID     string         `json:"user_id,omitempty"    doc:"A user."                                                                                      maxLength:"200"     minLength:"1"`
	SessionID  string         `json:"session_id,omitempty" maxLength:"200"                                                                                    minLength:"1"`
	TS         any            `json:"ts,omitempty"         doc:"When it happened: RFC 3339 or integer milliseconds since 1970. Absent: when it is received."`
	Properties map[string]any `json:"properties,omitempty"`
	Context    map[string]any `json:"context,omitempty"`
}

// IdentifyRequest is the body of POST /v1/identify.
type IdentifyRequest struct {
	_         struct{}       `additionalProperties:"true"`
	AnonID    string         `json:"anon_id"              maxLength:"200"                                                            minLength:"1"`
	UserID    string         `json:"user_id"              maxLength:"200"                                                            minLength:"1"`
	Traits    map[string]any `json:"traits,omitempty"     doc:"What is known of the person. Of each trait the value with the latest ts counts."`
	TS        any            `json:"ts,omitempty"         doc:"RFC 3339 or integer milliseconds since 1970. Absent: when it is received."`
	SessionID string         `json:"session_id,omitempty" maxLength:"200"                                                            minLength:"1"`
}

// AliasRequest is the body of POST /v1/alias.
type AliasRequest struct {
	_      struct{} `additionalProperties:"true"`
	AnonID string   `json:"anon_id"              maxLength:"200" minLength:"1"`
	UserID string   `json:"user_id"              maxLength:"200" minLength:"1"`
}

// Nothing is the body of an answer that has nothing to say.
type Nothing struct{}

// TrackResponse is the 202 answer of POST /v1/track. Accepted counts every
// valid item, repeats included; Duplicates says how many of those were repeats.
type TrackResponse struct {
	Accepted   int         `json:"accepted"`
	Duplicates int         `json:"duplicates"`
	Rejected   []Rejection `json:"rejected"`
}

// AccountsFor reports whether the counts and places fit a request of n items.
// An answer that does not was not made for that request: a client takes it for
// none.
func (a TrackResponse) AccountsFor(n int) bool {
	seen := make([]bool, n)
	for _, r := range a.Rejected {
		if r.Index < 0 || r.Index >= n || seen[r.Index] {
			return false
		}
		seen[r.Index] = true
	}
	return a.Accepted+len(a.Rejected) == n && a.Duplicates >= 0 && a.Duplicates <= a.Accepted
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

// RejectCodes are all of them, in the order of the checks.
var RejectCodes = []RejectCode{
	RejectInvalidEvent, RejectInvalidEventID, RejectMissingIdentity, RejectInvalidAnonID, RejectInvalidUserID,
	RejectInvalidSessionID, RejectInvalidTimestamp, RejectInvalidProperties, RejectInvalidContext, RejectEventTooLarge,
}

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
