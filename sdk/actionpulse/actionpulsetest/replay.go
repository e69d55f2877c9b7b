package actionpulsetest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

// ReplayChunk is a chunk of a session's recording as it was stored.
type ReplayChunk struct {
	SessionID string
	Chunk     int64
	// AnonID and UserID are empty if none was sent.
	AnonID, UserID string
	// Events is the array, byte for byte as it was sent.
	Events     json.RawMessage
	ReceivedAt time.Time
}

// replayLimit is the most that the body of a chunk may hold, maxChunk the
// highest number.
const (
	replayLimit = 5 << 20
	maxChunk    = 1_000_000
	// maxEventsDepth is how deep the body of a chunk may nest within its events:
	// each level of a page takes two.
	maxEventsDepth = 512
)

// ReplayChunks returns the chunks that are stored, in the order of their
// acceptance. Repeats are not among them.
func (s *Server) ReplayChunks() []ReplayChunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.chunks)
}

// replay takes a chunk in: the first with a number wins.
func (s *Server) replay(x *exchange) (reply, error) {
	one, err := readChunk(x.body)
	if err != nil {
		return reply{}, err
	}
	i := slices.IndexFunc(s.chunks, func(c ReplayChunk) bool { return c.SessionID == one.SessionID && c.Chunk == one.Chunk })
	if i < 0 {
		one.ReceivedAt = s.time()
		s.chunks = append(s.chunks, one)
		return jsonReply(http.StatusAccepted, api.ReplayResponse{})
	}
	first := s.chunks[i].compared()
	return jsonReply(http.StatusAccepted, api.ReplayResponse{Duplicate: true, Conflict: len(first.Differs(one.compared())) > 0})
}

// compared is what of a chunk is compared: its events, by value.
func (c *ReplayChunk) compared() idempotency.Print {
	body := slices.Concat([]byte(`{"events":`), c.Events, []byte(`}`))
	return idempotency.NormalJSON(idempotency.Field{Name: "events", Depth: maxEventsDepth}).Print(&idempotency.Request{Body: body})
}

// readChunk reads the body of replay. It refuses with invalid_json and
// validation_failed.
func readChunk(body []byte) (c ReplayChunk, err error) {
	if err := checkDeepBody(body, "events"); err != nil {
		return c, err
	}
	if bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return c, invalidField("body", "must be a JSON object")
	}
	members := map[string]json.RawMessage{}
	if err := eachMember(body, func(name string, value json.RawMessage) error {
		if !isNull(value) {
			members[name] = value
		}
		return nil
	}); err != nil {
		return c, err
	}
	if c.SessionID, err = personID(members, "session_id", true); err != nil {
		return c, err
	}
	if c.Chunk, err = readNumber(members["chunk"]); err != nil {
		return c, err
	}
	if c.AnonID, err = personID(members, "anon_id", false); err != nil {
		return c, err
	}
	if c.UserID, err = personID(members, "user_id", false); err != nil {
		return c, err
	}
	c.Events = slices.Clone(members["events"])
	var list []json.RawMessage
	if json.Unmarshal(c.Events, &list) != nil || slices.ContainsFunc(list, func(one json.RawMessage) bool { return one[0] != '{' }) {
		return c, invalidField("events", "must be an array of objects, the events of rrweb")
	}
	return c, nil
}

// readNumber reads the number of a chunk, however it is spelt.
func readNumber(raw json.RawMessage) (int64, error) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if n := int64(f); err == nil && f >= 0 && f <= maxChunk && float64(n) == f {
		return n, nil
	}
	return 0, invalidField("chunk", "must be a whole number from 0 to 1000000")
}
