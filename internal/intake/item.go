package intake

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	// MaxItemBytes is the size of the largest item, as it was sent.
	MaxItemBytes = 64 << 10
	// maxIDRunes bounds event names and the ids of persons and sessions, in
	// characters.
	maxIDRunes = 200
	// maxEchoRunes bounds what of a rejected event_id is repeated.
	maxEchoRunes = 64

	// itemLevel is the level of an item in its request, propertiesLevel that
	// of the objects in it.
	itemLevel       = 3
	propertiesLevel = itemLevel + 1
)

// fields are the members of an item that intake reads; nil means absent or
// null.
type fields struct {
	eventID, event, anonID, userID, sessionID, ts, properties, context jsontext.Value
}

// set keeps a member that intake reads and ignores any other: clients age.
func (f *fields) set(quotedName, value jsontext.Value) {
	if value.Kind() == 'n' {
		return
	}
	switch string(quotedName) {
	case `"event_id"`:
		f.eventID = value
	case `"event"`:
		f.event = value
	case `"anon_id"`:
		f.anonID = value
	case `"user_id"`:
		f.userID = value
	case `"session_id"`:
		f.sessionID = value
	case `"ts"`:
		f.ts = value
	case `"properties"`:
		f.properties = value
	case `"context"`:
		f.context = value
	}
}

// reject is the verdict on an item that cannot be accepted.
func reject(code api.RejectCode, format string, args ...any) *api.Rejection {
	return &api.Rejection{Code: code, Message: fmt.Sprintf(format, args...)}
}

// item reads and judges one item of a batch. Its strings share the request's
// body. A rejection depends on the item alone, so a repeat is judged alike.
func (p *parser) item(raw jsontext.Value) (record.Item, *api.Rejection) {
	f, rejection := p.fields(raw)
	if rejection != nil {
		return record.Item{}, p.echo(rejection, f)
	}
	it, rejection := p.judge(f)
	if rejection == nil && len(raw) > MaxItemBytes {
		rejection = reject(api.RejectEventTooLarge, "The item has %d bytes, more than %d", len(raw), MaxItemBytes)
	}
	return it, p.echo(rejection, f)
}

// echo adds the event_id to a rejection if it is a string short enough.
func (p *parser) echo(r *api.Rejection, f fields) *api.Rejection {
	if r == nil {
		return nil
	}
	if text, ok := p.text(f.eventID); ok && utf8.RuneCountInString(text) <= maxEchoRunes {
		r.EventID = new(strings.Clone(text))
	}
	return r
}

func (p *parser) fields(raw jsontext.Value) (f fields, rejection *api.Rejection) {
	if raw.Kind() != '{' {
		return f, reject(api.RejectInvalidEvent, "An item must be an object")
	}
	p.resetInner(raw)
	dec := &p.inner
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != '}' {
		var name, value jsontext.Value
		if name, err = readWithin(dec, raw); err != nil {
			break
		}
		if value, err = readWithin(dec, raw); err == nil {
			f.set(p.plain(name), value)
		}
	}
	if depthOf(raw)+itemLevel-1 > maxDepth {
		return f, reject(api.RejectInvalidEvent, "The item nests deeper than %d levels", maxDepth)
	}
	if err != nil { // the value is valid JSON, so this can only be a repeated name
		return f, reject(api.RejectInvalidEvent, "The item repeats a member name")
	}
	return f, nil
}

// readWithin reads a value as the part of raw that it is, which stays valid
// when the decoder moves on.
func readWithin(dec *jsontext.Decoder, raw jsontext.Value) (jsontext.Value, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(dec.InputOffset())
	return raw[end-len(value) : end : end], nil
}

// judge applies the checks in the order that the API documents.
func (p *parser) judge(f fields) (record.Item, *api.Rejection) {
	it := record.Item{Type: record.ItemEvent}
	var ok bool
	if it.Event, ok = p.text(f.event); !ok || !validName(it.Event) {
		return it, reject(api.RejectInvalidEvent, "event must be a name of 1 to %d characters without control characters", maxIDRunes)
	}
	if f.eventID != nil {
		text, isText := p.text(f.eventID)
		if it.EventID, it.Claimed = parseEventID([]byte(text)); !isText || !it.Claimed {
			return it, reject(api.RejectInvalidEventID, "event_id must be a UUID, and neither the nil nor the max UUID")
		}
	}
	if f.anonID == nil && f.userID == nil {
		return it, reject(api.RejectMissingIdentity, "The item needs an anon_id or a user_id")
	}
	if it.AnonID, ok = p.id(f.anonID); !ok {
		return it, rejectID(api.RejectInvalidAnonID, "anon_id")
	}
	if it.UserID, ok = p.id(f.userID); !ok {
		return it, rejectID(api.RejectInvalidUserID, "user_id")
	}
	if it.SessionID, ok = p.id(f.sessionID); !ok {
		return it, rejectID(api.RejectInvalidSessionID, "session_id")
	}
	if f.ts != nil {
		if it.ClientTS, it.HasTS = p.parseTime(f.ts); !it.HasTS {
			return it, reject(api.RejectInvalidTimestamp, "ts must be a time in RFC 3339 or integer milliseconds since 1970")
		}
	}
	return it, p.objects(&it, f)
}

// objects judges properties and context and computes the fingerprint.
func (p *parser) objects(it *record.Item, f fields) *api.Rejection {
	properties, err := p.object(f.properties)
	if err != nil {
		return reject(api.RejectInvalidProperties, "properties %s", err)
	}
	context, err := p.object(f.context)
	if err != nil {
		return reject(api.RejectInvalidContext, "context %s", err)
	}
	it.Properties, it.Context = f.properties, f.context
	it.Fingerprint = fingerprint(it, properties, context)
	return nil
}

var errNotObject = errors.New("must be an object")

// object returns the canonical hash of an object; absent is 0.
func (p *parser) object(value jsontext.Value) (uint64, error) {
	if value == nil {
		return 0, nil
	}
	if value.Kind() != '{' {
		return 0, errNotObject
	}
	return p.canonical.hash(value, propertiesLevel)
}

// id reads an optional id of a person or session; absent is "".
func (p *parser) id(value jsontext.Value) (string, bool) {
	if value == nil {
		return "", true
	}
	text, ok := p.text(value)
	return text, ok && validID(text)
}

func rejectID(code api.RejectCode, name string) *api.Rejection {
	return reject(code, "%s must be a string of 1 to %d characters", name, maxIDRunes)
}

func validID(s string) bool {
	return s != "" && (len(s) <= maxIDRunes || utf8.RuneCountInString(s) <= maxIDRunes)
}

func validName(s string) bool {
	blank := true
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
		blank = blank && unicode.IsSpace(r)
	}
	return !blank && validID(s)
}
