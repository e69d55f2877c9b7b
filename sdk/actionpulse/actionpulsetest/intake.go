package actionpulsetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// Event is an event as it was stored.
type Event struct {
	// EventID is the id, hyphenated and in lower case; one that the server has
	// made if none was sent.
	EventID string
	// KeyKind is browser, server or legacy.
	KeyKind string
	Event   string
	AnonID  string
	UserID  string
	// SessionID is empty if none was sent.
	SessionID  string
	ReceivedAt time.Time
	// TS is when it happened. TSStatus says how that is known: absent, ok,
	// skew_corrected, clamped_past or clamped_future; ClientTS is what was sent,
	// zero if nothing.
	TS, ClientTS time.Time
	TSStatus     string
	// Properties and Context are the objects as they were sent, nil if absent;
	// Traits are those of an identify.
	Properties, Context, Traits json.RawMessage
}

// Link is what identify and alias say: whose device it is.
type Link struct{ AnonID, UserID string }

// intake is what was sent.
type intake struct {
	events []Event
	// claims are when ids were accepted first.
	claims map[claim]time.Time
	links  []Link
}

// claim is the identity of an event, but the project.
type claim struct {
	kind kind
	id   string
}

func newIntake() *intake { return &intake{claims: map[claim]time.Time{}} }

// Events returns the events that are stored, in the order of their acceptance.
// Repeats are not among them.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.intake.events)
}

// Links returns the links of devices and users, in the order in which they were
// made first.
func (s *Server) Links() []Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.intake.links)
}

// batch is the body of track.
type batch struct {
	clock clock
	items []json.RawMessage
}

// maxItems is how many items a batch may hold.
const maxItems = 1000

// track takes a batch in: item by item, none of them spoiling another.
func (s *Server) track(x *exchange) (reply, error) {
	b, err := readBatch(x.body)
	if err != nil {
		return reply{}, err
	}
	if b.clock.historical && x.caller == browser {
		return reply{}, refuse(api.CodeForbidden, "historical is for server and legacy keys only")
	}
	out := api.TrackResponse{Rejected: []api.Rejection{}}
	for i, raw := range b.items {
		e, own, rejection := readItem(raw)
		if rejection != nil {
			rejection.Index = i
			out.Rejected = append(out.Rejected, *rejection)
			continue
		}
		out.Accepted++
		if !s.store(x.caller, e, own, b.clock) {
			out.Duplicates++
		}
	}
	return jsonReply(http.StatusAccepted, out)
}

// store adds an event unless it is a repeat within the window. own says that its
// id is the client's.
func (s *Server) store(k kind, e Event, own bool, c clock) bool {
	now := s.time()
	one := claim{k, e.EventID}
	if first, ok := s.intake.claims[one]; own && ok && now.Sub(first) <= s.window {
		return false
	}
	if own {
		s.intake.claims[one] = now
	} else {
		e.EventID = newID()
	}
	e.KeyKind, e.ReceivedAt = string(k), now
	e.TS, e.TSStatus = c.resolve(e.ClientTS, now)
	s.intake.events = append(s.intake.events, e)
	return true
}

// readBatch reads the body of track. It refuses with invalid_json, and with
// validation_failed if the rest is JSON.
func readBatch(body []byte) (batch, error) {
	b := batch{}
	var invalid error
	seen, isList := false, false
	err := eachMember(body, func(name string, value json.RawMessage) error {
		if name == "events" && value[0] == '[' {
			seen, isList = true, true
			b.items = nil
			return json.Unmarshal(value, &b.items)
		}
		if err := checkMember(value); err != nil {
			return err
		}
		seen = seen || name == "events"
		if err := b.set(name, value); err != nil {
			invalid = err
		}
		return nil
	})
	switch {
	case err != nil || invalid != nil:
		return b, errors.Join(err, invalid)
	case !seen:
		return b, invalidField("events", "is required")
	case !isList:
		return b, invalidField("events", "must be an array")
	case len(b.items) < 1 || len(b.items) > maxItems:
		return b, invalidField("events", "must hold 1 to 1000 items")
	}
	return b, nil
}

// set reads a member of the body that says something of all items. It refuses
// with validation_failed.
func (b *batch) set(name string, value json.RawMessage) error {
	switch {
	case name == "sent_at" && !isNull(value):
		at, ok := parseTime(value)
		if b.clock.sentAt = at; !ok {
			return invalidField("sent_at", "must be a time in RFC 3339 or integer milliseconds since 1970")
		}
	case name == "historical":
		b.clock.historical = value[0] == 't'
		if value[0] != 't' && value[0] != 'f' && !isNull(value) {
			return invalidField("historical", "must be true or false")
		}
	}
	return nil
}

// eachMember calls read for each member of the object that a body must be. It
// refuses with invalid_json and validation_failed.
func eachMember(body []byte, read func(name string, value json.RawMessage) error) error {
	if err := checkText(body); err != nil {
		return refuse(api.CodeInvalidJSON, "the body "+err.Error())
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if token, _ := d.Token(); token != json.Delim('{') {
		if err := checkBody(body); err != nil {
			return err
		}
		return refuse(api.CodeValidationFailed, "the body must be a JSON object")
	}
	names := map[string]bool{}
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		if names[name] {
			return refuse(api.CodeInvalidJSON, "the body repeats the member "+shorten(name))
		}
		names[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return refuse(api.CodeInvalidJSON, "the body "+errSyntax.Error())
		}
		if err := read(name, value); err != nil {
			return err
		}
	}
	return nil
}

// checkMember refuses repeated names and deep nesting in a member of the body.
func checkMember(value json.RawMessage) error {
	if err := checkTree(value, tree{depth: 2}); err != nil {
		return refuse(api.CodeInvalidJSON, "the body "+err.Error())
	}
	return nil
}

// identify links a device to a user, and adds one event each time.
func (s *Server) identify(x *exchange) (reply, error) {
	members, err := readPerson(x.body)
	if err != nil {
		return reply{}, err
	}
	e, err := readLink(members)
	if err != nil {
		return reply{}, err
	}
	e.Event = "identify"
	if e.SessionID, err = personID(members, "session_id", false); err != nil {
		return reply{}, err
	}
	if raw := members["ts"]; raw != nil {
		at, ok := parseTime(raw)
		if !ok {
			return reply{}, invalidField("ts", "must be a time in RFC 3339 or integer milliseconds since 1970")
		}
		e.ClientTS = at
	}
	for _, name := range []string{"traits", "context"} {
		if raw := members[name]; raw != nil && !storable(raw) {
			return reply{}, invalidField(name, "must be an object without \\u0000")
		}
	}
	e.Traits, e.Context = members["traits"], members["context"]
	s.link(e)
	s.store(x.caller, e, false, clock{})
	return reply{status: http.StatusAccepted, body: []byte("{}\n")}, nil
}

// alias links a device to a user.
func (s *Server) alias(x *exchange) (reply, error) {
	members, err := readPerson(x.body)
	if err != nil {
		return reply{}, err
	}
	e, err := readLink(members)
	if err != nil {
		return reply{}, err
	}
	s.link(e)
	return reply{status: http.StatusAccepted, body: []byte("{}\n")}, nil
}

// link notes a link that was not there.
func (s *Server) link(e Event) {
	one := Link{e.AnonID, e.UserID}
	if !slices.Contains(s.intake.links, one) {
		s.intake.links = append(s.intake.links, one)
	}
}

// readPerson returns the members of a body about a person, but those that are
// null.
func readPerson(body []byte) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	err := eachMember(body, func(name string, value json.RawMessage) error {
		if !isNull(value) {
			members[name] = value
		}
		return checkMember(value)
	})
	return members, err
}

func readLink(members map[string]json.RawMessage) (e Event, err error) {
	if e.AnonID, err = personID(members, "anon_id", true); err == nil {
		e.UserID, err = personID(members, "user_id", true)
	}
	return e, err
}

func personID(members map[string]json.RawMessage, name string, required bool) (string, error) {
	id, ok := readPersonID(members[name])
	if !ok || required && id == "" {
		return "", invalidField(name, "must be a string of 1 to 200 characters")
	}
	return id, nil
}
