package actionpulsetest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
)

const (
	// maxItemBytes is the size of the largest item.
	maxItemBytes = 64 << 10
	// maxName bounds names of events and ids of persons and sessions, in
	// characters.
	maxName = 200
	// itemLevel is the level of an item in its request.
	itemLevel = 3
)

// readItem judges an item by itself: the checks run in the order that the API
// documents, and the first that fails is the verdict. own says that the item has
// an id of its own.
func readItem(raw json.RawMessage) (e Event, own bool, rejection *api.Rejection) {
	members, ok := itemMembers(raw)
	code := api.RejectInvalidEvent
	if ok {
		e, own, code = judgeItem(members)
	}
	if code == "" && len(raw) > maxItemBytes {
		code = api.RejectEventTooLarge
	}
	if code == "" {
		return e, own, nil
	}
	rejection = &api.Rejection{Code: code, Message: "the item has the fault " + string(code)}
	if id, isText := textOf(members["event_id"]); isText && utf8.RuneCountInString(id) <= longestShown {
		rejection.EventID = &id
	}
	return e, own, rejection
}

// itemMembers returns the members of an item, but those that are null, and
// whether it is an object that can be read. What was read before a fault is
// returned with it.
func itemMembers(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if raw[0] != '{' {
		return nil, false
	}
	members := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token()
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		var value json.RawMessage
		if d.Decode(&value) != nil || checkTree(value, tree{depth: 1}) == errRepeats { //nolint:errorlint // it is returned as it is
			return members, false
		}
		if !isNull(value) {
			members[name] = value
		}
	}
	return members, checkTree(raw, tree{depth: itemLevel}) == nil
}

// judgeItem returns what an item says, or the code of its first fault.
func judgeItem(m map[string]json.RawMessage) (e Event, own bool, code api.RejectCode) {
	var ok bool
	if e.Event, ok = textOf(m["event"]); !ok || !validName(e.Event) {
		return e, own, api.RejectInvalidEvent
	}
	if raw := m["event_id"]; raw != nil {
		text, isText := textOf(raw)
		if e.EventID, own = parseEventID(text); !isText || !own {
			return e, own, api.RejectInvalidEventID
		}
	}
	if m["anon_id"] == nil && m["user_id"] == nil {
		return e, own, api.RejectMissingIdentity
	}
	if e.AnonID, ok = readPersonID(m["anon_id"]); !ok {
		return e, own, api.RejectInvalidAnonID
	}
	if e.UserID, ok = readPersonID(m["user_id"]); !ok {
		return e, own, api.RejectInvalidUserID
	}
	if e.SessionID, ok = readPersonID(m["session_id"]); !ok {
		return e, own, api.RejectInvalidSessionID
	}
	if raw := m["ts"]; raw != nil {
		if e.ClientTS, ok = parseTime(raw); !ok {
			return e, own, api.RejectInvalidTimestamp
		}
	}
	e.Properties, e.Context = m["properties"], m["context"]
	if e.Properties != nil && !storable(e.Properties) {
		return e, own, api.RejectInvalidProperties
	}
	if e.Context != nil && !storable(e.Context) {
		return e, own, api.RejectInvalidContext
	}
	return e, own, ""
}

func textOf(raw json.RawMessage) (text string, ok bool) {
	return text, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil
}

// readPersonID reads an optional id of a person or session; absent is "".
func readPersonID(raw json.RawMessage) (string, bool) {
	if raw == nil {
		return "", true
	}
	id, ok := textOf(raw)
	return id, ok && id != "" && utf8.RuneCountInString(id) <= maxName
}

func validName(s string) bool {
	return strings.TrimFunc(s, unicode.IsSpace) != "" && !strings.ContainsFunc(s, unicode.IsControl) && utf8.RuneCountInString(s) <= maxName
}

const hyphenated = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

var eventIDs = regexp.MustCompile(`\A(?i:[0-9a-f]{32}|(?:urn:uuid:)?` + hyphenated + `|\{` + hyphenated + `\})\z`)

// parseEventID reads a UUID in one of its four written forms, in any case, with
// nothing before or after, and returns it in one. The nil and the max UUID are
// no ids.
func parseEventID(s string) (string, bool) {
	if !eventIDs.MatchString(s) {
		return "", false
	}
	id, err := uuid.Parse(s)
	return id.String(), err == nil && id != uuid.Nil && id != uuid.Max
}

// storable says whether a value is an object that every store can keep: without
// the character \u0000 and numbers that no double can hold.
func storable(raw json.RawMessage) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil { // a number out of range, or the end
			return depth == 0 && d.InputOffset() >= int64(len(raw)) && raw[0] == '{'
		}
		switch token := token.(type) {
		case json.Delim:
			depth++
			if token == '}' || token == ']' {
				depth -= 2
			}
		case string:
			if strings.ContainsRune(token, 0) {
				return false
			}
		}
	}
}

const (
	// minMillis is the smallest number taken for milliseconds since 1970; a
	// smaller one can only be seconds.
	minMillis = 100_000_000_000
	// firstMillis and lastMillis begin and end the years 0000 to 9999.
	firstMillis = -62_167_219_200_000
	lastMillis  = 253_402_300_799_999
	// longestTime is the longest text of a time, in bytes.
	longestTime = len("2006-01-02T15:04:05.000000000000+00:00")
)

var rfc3339 = regexp.MustCompile(`\A(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:)(\d\d)(\.\d+)?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)\z`)

// parseTime reads a time in RFC 3339 or as an integer of milliseconds since
// 1970, to the millisecond. The second 60 ends a month, and is the one after it.
func parseTime(raw json.RawMessage) (time.Time, bool) {
	text, isText := textOf(raw)
	if !isText {
		ms, err := strconv.ParseInt(string(raw), 10, 64)
		return time.UnixMilli(ms).UTC(), err == nil && ms >= minMillis && ms <= lastMillis
	}
	m := rfc3339.FindStringSubmatch(text)
	if m == nil || len(text) > longestTime {
		return time.Time{}, false
	}
	second, leap := m[3], time.Duration(0)
	if second == "60" {
		second, leap = "59", time.Second
	}
	t, err := time.Parse(time.RFC3339, m[1]+"T"+m[2]+second+m[4]+strings.ToUpper(m[5]))
	if err != nil || leap > 0 && !endsMonth(t) {
		return time.Time{}, false
	}
	ms := t.Add(leap).UnixMilli()
	return time.UnixMilli(ms).UTC(), ms >= firstMillis && ms <= lastMillis
}

// endsMonth says whether a leap second can follow t.
func endsMonth(t time.Time) bool {
	next := t.UTC().Truncate(time.Second).Add(time.Second)
	return next.Day() == 1 && next.Hour() == 0 && next.Minute() == 0 && next.Second() == 0
}

// clock is what a request says of its sender's clock.
type clock struct {
	sentAt     time.Time // zero: it does not say
	historical bool
}

// How far a client's times may be off.
const (
	maxTransit = 5 * time.Minute
	maxAge     = 48 * time.Hour
	maxAhead   = 5 * time.Minute
)

// resolve returns the time of an event and how it came about.
func (c clock) resolve(client, received time.Time) (time.Time, string) {
	if client.IsZero() {
		return received, "absent"
	}
	received = received.Truncate(time.Millisecond)
	at, status := client, "ok"
	if skew := received.Sub(c.sentAt); !c.sentAt.IsZero() && !c.historical && skew.Abs() > maxTransit {
		at, status = client.Add(skew), "skew_corrected"
	}
	switch {
	case at.After(received.Add(maxAhead)):
		return received, "clamped_future"
	case at.Before(received.Add(-maxAge)) && !c.historical:
		return received, "clamped_past"
	default:
		return at, status
	}
}
