package judgeclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// API says where in a request its items, ids and times are, and how a server
// answers. A nil function stands for "there is no such thing".
type API struct {
	Name string
	// ItemsPointer is the JSON pointer of the list of items; "" means that
	// the body itself is the list, or one item.
	ItemsPointer string
	// ID and TS are the members of an item that hold its id and its time.
	ID, TS string
	// Fact are the members by which a fact is recognised; none means all but
	// ID, TS and Ignore.
	Fact, Ignore []string
	// UnitPointer is the JSON pointer of what names a unit of keyed work;
	// "" means the whole body.
	UnitPointer string
	// KeyHeader is the header that carries the key of keyed work.
	KeyHeader string
	// Paths are the ends of the paths that items are sent to; none means all.
	Paths []string
	// Envelope says that errors are in our envelope, with X-Should-Retry.
	Envelope bool
	// SuccessStatus and SuccessBody are the answer to accepted items.
	SuccessStatus int
	SuccessBody   string
	// Rejected writes the success that rejects the first items.
	Rejected func(items []Item, rejected, duplicates int) []byte
}

// The adapters that come with the lab.
var (
	// ActionPulse is our own API.
	ActionPulse = API{
		Name: "actionpulse", ItemsPointer: "/events", ID: "event_id", TS: "ts",
		Fact:     []string{"event", "anon_id", "user_id", "session_id", "properties"},
		Paths:    []string{"/v1/track"},
		Envelope: true, SuccessStatus: 202, KeyHeader: "Idempotency-Key", Rejected: trackAnswer,
	}
	// Segment is the batch method of Segment's tracking API.
	Segment = API{
		Name: "segment", ItemsPointer: "/batch", ID: "messageId", TS: "timestamp",
		Fact:          []string{"type", "event", "userId", "anonymousId", "groupId", "properties", "traits"},
		Paths:         []string{"/v1/batch", "/v1/import"},
		SuccessStatus: 200, SuccessBody: `{"success": true}`, KeyHeader: "Idempotency-Key",
	}
	// PostHog is the batch method of PostHog's capture API.
	PostHog = API{
		Name: "posthog", ItemsPointer: "/batch", ID: "uuid", TS: "timestamp",
		Fact:          []string{"event", "distinct_id", "properties"},
		Paths:         []string{"/batch", "/batch/"},
		SuccessStatus: 200, SuccessBody: `{"status": 1}`, KeyHeader: "Idempotency-Key",
	}
	// Generic is to be completed by the caller.
	Generic = API{Name: "generic", SuccessStatus: 200, SuccessBody: `{}`, KeyHeader: "Idempotency-Key"}
)

// APIs are the adapters by name.
var APIs = map[string]API{"actionpulse": ActionPulse, "segment": Segment, "posthog": PostHog, "generic": Generic}

// members are those of a JSON object, undecoded.
type members map[string]json.RawMessage

// items reads the facts of an intake body.
func (a *API) items(body []byte) ([]Item, error) {
	list, err := a.list(body)
	if err != nil {
		return nil, err
	}
	items := make([]Item, 0, len(list))
	seen := map[string]int{}
	for i, raw := range list {
		var m members
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("item %d is not an object", i)
		}
		item := Item{ID: text(m[a.ID]), TS: plain(m[a.TS]), Fact: hash(a.factOf(m)), Name: nameOf(m, i)}
		// Equal facts in one request are told apart by their place.
		seen[item.Fact]++
		if n := seen[item.Fact]; n > 1 {
			item.Fact += "#" + strconv.Itoa(n)
		}
		items = append(items, item)
	}
	return items, nil
}

// list finds the items of a body.
func (a *API) list(body []byte) ([]json.RawMessage, error) {
	raw, err := point(body, a.ItemsPointer)
	if err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '{' {
		return []json.RawMessage{raw}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("there is no list of items at %q", a.ItemsPointer)
	}
	return list, nil
}

// factOf returns the members that make up the fact.
func (a *API) factOf(m members) []byte {
	if len(a.Fact) == 0 {
		return without(m, append([]string{a.ID, a.TS}, a.Ignore...)...)
	}
	kept := members{}
	for _, name := range a.Fact {
		if v, ok := m[name]; ok {
			kept[name] = v
		}
	}
	return without(kept)
}

// without encodes an object without some of its members, in a fixed order and
// spelling.
func without(m members, names ...string) []byte {
	kept := map[string]any{}
	for name, raw := range m {
		if slices.Contains(names, name) {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			v = string(raw)
		}
		kept[name] = v
	}
	out, err := json.Marshal(kept)
	if err != nil {
		return fmt.Append(nil, kept)
	}
	return out
}

// point returns the value at a JSON pointer.
func point(body []byte, pointer string) (json.RawMessage, error) {
	raw := json.RawMessage(body)
	if !json.Valid(body) {
		return nil, errors.New("the body is not JSON")
	}
	if pointer == "" {
		return raw, nil
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		var m members
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("there is nothing at %q", pointer)
		}
		next, ok := m[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
		if !ok {
			return nil, fmt.Errorf("there is nothing at %q", pointer)
		}
		raw = next
	}
	return raw, nil
}

// text is the value of a JSON string, or the JSON of anything else but null.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return plain(raw)
}

// plain is raw JSON, or "" for null and nothing.
func plain(raw json.RawMessage) string {
	if s := strings.TrimSpace(string(raw)); s != "null" {
		return s
	}
	return ""
}

// nameOf is what evidence calls an item.
func nameOf(m members, i int) string {
	if event := text(m["event"]); event != "" {
		return short(event)
	}
	return "item " + strconv.Itoa(i)
}
