package replay

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

// request is a chunk as it is sent. Its texts are copies, its events share the
// body.
type request struct {
	sessionID string
	chunk     int64
	person    Person
	// events is the array, byte for byte, and shown what its objects show.
	events []byte
	shown  summing
}

// maxDepth is how deep a body may nest within its events: rrweb takes two levels
// for each level of a page.
const maxDepth = 512

// members are those that are known.
var members = []string{"session_id", "chunk", "anon_id", "user_id", "events"}

// readRequest reads a body. Members that it does not know are ignored: clients
// age. It refuses with invalid_json, and with validation_failed and the member
// at fault.
func readRequest(body []byte) (request, error) {
	if err := jsonsyntax.CheckDeep(body, jsonsyntax.Deep{Name: "events", Depth: maxDepth}); err != nil {
		return request{}, err
	}
	if jsontext.Value(body).Kind() != '{' {
		return request{}, fault.Field("body", "the body must be a JSON object")
	}
	given := map[string]jsontext.Value{}
	if err := eachMember(body, func(name string, value jsontext.Value) {
		if value.Kind() != 'n' && slices.Contains(members, name) {
			given[name] = value
		}
	}); err != nil {
		return request{}, fault.Field("body", "the body cannot be read")
	}
	return readMembers(given)
}

func readMembers(given map[string]jsontext.Value) (r request, err error) {
	if r.sessionID, err = readID(given, "session_id"); err != nil {
		return r, err
	}
	if r.sessionID == "" {
		return r, fault.Field("session_id", "session_id is required")
	}
	if r.chunk, err = readChunk(given["chunk"]); err != nil {
		return r, err
	}
	if r.person.AnonID, err = readID(given, "anon_id"); err != nil {
		return r, err
	}
	if r.person.UserID, err = readID(given, "user_id"); err != nil {
		return r, err
	}
	r.events = given["events"]
	if err := r.shown.read(r.events); err != nil {
		return r, fault.Field("events", "events must be an array of objects, the events of rrweb")
	}
	return r, nil
}

// readID reads an optional id of a session or a person; absent is "".
func readID(given map[string]jsontext.Value, name string) (string, error) {
	value := given[name]
	if value == nil {
		return "", nil
	}
	if value.Kind() == '"' {
		text, err := jsontext.AppendUnquote(nil, value)
		if err == nil && len(text) > 0 && utf8.RuneCount(text) <= maxIDRunes {
			return string(text), nil
		}
	}
	return "", fault.Field(name, "%s must be a string of 1 to %d characters", name, maxIDRunes)
}

// readChunk reads the number of a chunk, however it is spelt: 3, 3.0 and 3e0
// are one.
func readChunk(value jsontext.Value) (int64, error) {
	if value.Kind() == '0' {
		f, err := strconv.ParseFloat(string(value), 64)
		if n := int64(f); err == nil && f >= 0 && f <= MaxChunk && float64(n) == f {
			return n, nil
		}
	}
	return 0, fault.Field("chunk", "chunk must be a whole number from 0 to %d", MaxChunk)
}

// eachMember calls fn for each member of an object that is valid JSON. The
// values are parts of it.
func eachMember(object jsontext.Value, fn func(name string, value jsontext.Value)) error {
	return eachMemberOf(jsontext.NewDecoder(bytes.NewBuffer(object)), object, fn)
}

// eachMemberOf is eachMember with a decoder that is at the object's beginning.
func eachMemberOf(dec *jsontext.Decoder, object jsontext.Value, fn func(name string, value jsontext.Value)) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		value, err := readWithin(dec, object)
		if err != nil {
			return err
		}
		fn(text, value)
	}
	return nil
}

// readWithin reads a value as the part of whole that it is, which stays valid
// when the decoder moves on.
func readWithin(dec *jsontext.Decoder, whole []byte) (jsontext.Value, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(dec.InputOffset())
	return whole[end-len(value) : end : end], nil
}
