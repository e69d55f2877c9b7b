package actionpulse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

// Event is a fact to be tracked.
type Event struct {
	// ID is a UUID in any of its written forms, but not the nil or the max
	// UUID. Empty: one is made.
	ID string
	// Name is 1–200 characters, not blank, without control characters.
	Name string
	// AnonID and UserID, one of which must be there, and SessionID are up to
	// 200 characters.
	AnonID    string
	UserID    string
	SessionID string
	// Time is when it happened, kept to the millisecond; zero means now.
	Time time.Time
	// Properties and Context are encoded at once, and may be changed after.
	Properties map[string]any
	Context    map[string]any
}

// Identity says who an anonymous id is.
type Identity struct {
	// AnonID and UserID are required, up to 200 characters.
	AnonID    string
	UserID    string
	SessionID string
	// Traits are what is known of the person; of each, the latest by Time
	// counts.
	Traits map[string]any
	// Time is zero for now.
	Time time.Time
}

// InvalidEventError says why a record was not taken. Nothing of it is kept.
type InvalidEventError struct {
	// Code is the one that the server would reject an item with.
	Code    api.RejectCode
	Message string
	Err     error
}

func (e *InvalidEventError) Error() string {
	text := "actionpulse: " + string(e.Code) + ": " + e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause, if there is one.
func (e *InvalidEventError) Unwrap() error { return e.Err }

func invalid(code api.RejectCode, format string, args ...any) *InvalidEventError {
	return &InvalidEventError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// The types of records, as kept in the outbox.
const (
	typeTrack outbox.Type = iota + 1
	typeIdentify
	typeAlias
)

const maxIDRunes = 200

// wireEvent is an item of /v1/track; wirePerson a body of the other two.
type wireEvent struct {
	EventID    string         `json:"event_id"`
	Event      string         `json:"event"`
	AnonID     string         `json:"anon_id,omitempty"`
	UserID     string         `json:"user_id,omitempty"`
	SessionID  string         `json:"session_id,omitempty"`
	TS         string         `json:"ts"`
	Properties map[string]any `json:"properties,omitempty"`
	Context    map[string]any `json:"context,omitempty"`
}

type wirePerson struct {
	AnonID    string         `json:"anon_id"`
	UserID    string         `json:"user_id"`
	SessionID string         `json:"session_id,omitempty"`
	TS        string         `json:"ts,omitempty"`
	Traits    map[string]any `json:"traits,omitempty"`
}

const tsLayout = "2006-01-02T15:04:05.000Z07:00"

// encode checks an event in the order in which the server would, and makes the
// record of it. at is the time of the fact.
func (e Event) encode(id string, at time.Time) (outbox.Record, error) {
	if !validName(e.Name) {
		return outbox.Record{}, invalid(api.RejectInvalidEvent, "Name must have 1 to %d characters, not only blanks and no control characters", maxIDRunes)
	}
	key, err := parseEventID(id)
	if err != nil {
		return outbox.Record{}, &InvalidEventError{Code: api.RejectInvalidEventID, Message: "ID", Err: err}
	}
	if e.AnonID == "" && e.UserID == "" {
		return outbox.Record{}, invalid(api.RejectMissingIdentity, "AnonID or UserID is required")
	}
	if err := validIDs(e.AnonID, e.UserID, e.SessionID); err != nil {
		return outbox.Record{}, err
	}
	if err := validTime(at); err != nil {
		return outbox.Record{}, err
	}
	data, err := encodeRecord(wireEvent{
		key.String(), e.Name, e.AnonID, e.UserID, e.SessionID, at.UTC().Format(tsLayout), e.Properties, e.Context,
	})
	if err != nil {
		return outbox.Record{}, err
	}
	return outbox.Record{Type: typeTrack, At: at.UnixMilli(), ID: key, Data: data}, nil
}

// encode checks an identity and makes the record of it.
func (i Identity) encode(at time.Time) (outbox.Record, error) {
	if err := i.valid(); err != nil {
		return outbox.Record{}, err
	}
	if err := validTime(at); err != nil {
		return outbox.Record{}, err
	}
	data, err := encodeRecord(wirePerson{i.AnonID, i.UserID, i.SessionID, at.UTC().Format(tsLayout), i.Traits})
	return outbox.Record{Type: typeIdentify, At: at.UnixMilli(), Data: data}, err
}

// encodeAlias makes the record of a link alone.
func (i Identity) encodeAlias(at time.Time) (outbox.Record, error) {
	if err := i.valid(); err != nil {
		return outbox.Record{}, err
	}
	data, err := encodeRecord(wirePerson{AnonID: i.AnonID, UserID: i.UserID})
	return outbox.Record{Type: typeAlias, At: at.UnixMilli(), Data: data}, err
}

func (i Identity) valid() error {
	if i.AnonID == "" || i.UserID == "" {
		return invalid(api.RejectMissingIdentity, "the anonymous id and the user id are required")
	}
	return validIDs(i.AnonID, i.UserID, i.SessionID)
}

// encodeRecord makes the JSON of a record and refuses what intake would.
func encodeRecord(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, &InvalidEventError{Code: api.RejectInvalidProperties, Message: "properties, context or traits cannot be encoded", Err: err}
	}
	data := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	if len(data) > MaxItemBytes {
		return nil, invalid(api.RejectEventTooLarge, "the record has %d bytes, more than %d", len(data), MaxItemBytes)
	}
	return data, nil
}

func newEventID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}

const (
	urnPrefix       = "urn:uuid:"
	hyphenatedRunes = 36
)

var errNotUUID = errors.New("must be a UUID, and neither the nil nor the max UUID")

// parseEventID reads a UUID in one of its four written forms, with nothing
// before or after. (The parser of package uuid takes any two bytes around a
// hyphenated one.)
func parseEventID(s string) (uuid.UUID, error) {
	switch {
	case len(s) == hyphenatedRunes+2 && (s[0] != '{' || s[len(s)-1] != '}'),
		len(s) == hyphenatedRunes+len(urnPrefix) && !strings.EqualFold(s[:len(urnPrefix)], urnPrefix):
		return uuid.UUID{}, errNotUUID
	}
	id, err := uuid.Parse(s)
	if err != nil || id == uuid.Nil || id == uuid.Max {
		return uuid.UUID{}, errNotUUID
	}
	return id, nil
}

func validIDs(anonID, userID, sessionID string) error {
	switch {
	case !validID(anonID):
		return invalid(api.RejectInvalidAnonID, "the anonymous id is longer than %d characters or not UTF-8", maxIDRunes)
	case !validID(userID):
		return invalid(api.RejectInvalidUserID, "the user id is longer than %d characters or not UTF-8", maxIDRunes)
	case !validID(sessionID):
		return invalid(api.RejectInvalidSessionID, "the session id is longer than %d characters or not UTF-8", maxIDRunes)
	default:
		return nil
	}
}

func validID(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxIDRunes
}

func validName(s string) bool {
	return strings.TrimSpace(s) != "" && validID(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func validTime(t time.Time) error {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return invalid(api.RejectInvalidTimestamp, "Time must be in the years 1 to 9999")
	}
	return nil
}
