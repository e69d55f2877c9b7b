package torture_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// row is a stored event as the query API shows it.
type row struct {
	EventID    uuid.UUID       `json:"event_id"`
	Event      string          `json:"event"`
	AnonID     *string         `json:"anon_id"`
	UserID     *string         `json:"user_id"`
	Person     string          `json:"person"`
	SessionID  *string         `json:"session_id"`
	KeyKind    string          `json:"key_kind"`
	Properties json.RawMessage `json:"properties"`
}

// maxProblems is how many problems a check spells out.
const maxProblems = 20

// check compares the stored events with what was sent and acknowledged.
type check struct {
	*model

	// mayLack says that acknowledged items may be missing.
	mayLack  bool
	problems []string
	claims   map[*claim]int
	items    map[*item]int
	// lacking counts acknowledged items that are not stored.
	lacking int
}

// checkRows returns what is wrong with the stored events, and how many
// acknowledged items are missing. With mayLack, missing ones are no problem.
func (m *model) checkRows(rows []row, mayLack bool) (problems []string, lacking int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &check{model: m, mayLack: mayLack, claims: map[*claim]int{}, items: map[*item]int{}}
	for i := range rows {
		c.row(&rows[i])
	}
	for _, claim := range m.claims {
		c.claim(claim)
	}
	for _, it := range m.items {
		if it.claim == nil && it.code == "" {
			c.idless(it)
		}
	}
	return c.problems, c.lacking
}

func (c *check) fault(format string, args ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, fmt.Sprintf(format, args...))
	}
}

// row checks that an event was sent as it is stored.
func (c *check) row(r *row) {
	it := c.model.items[text(r.SessionID)]
	switch {
	case it == nil:
		c.fault("stored but never sent: %+v", *r)
		return
	case it.code != "":
		c.fault("stored although it had to be rejected as %s: %s", it.code, it.text)
		return
	case it.deliveries < 1:
		c.fault("stored although the server said that it took nothing: %s", it.text)
		return
	}
	if r.Event != it.event || r.KeyKind != it.kind || text(r.AnonID) != it.anonID || text(r.UserID) != it.userID || !equalJSON(r.Properties, it.properties) {
		c.fault("stored otherwise than sent: %+v with %s, sent %s by a %s key", *r, r.Properties, it.text, it.kind)
	}
	c.person(r, it)
	c.items[it]++
	if it.claim == nil {
		return
	}
	c.claims[it.claim]++
	if r.EventID != it.claim.id {
		c.fault("stored with the id %s: %s", r.EventID, it.text)
	}
	if !it.claim.isCandidate(it) {
		c.fault("stored although another item had been acknowledged with its id before it was sent: %s", it.text)
	}
}

func (c *claim) isCandidate(it *item) bool {
	return slices.Contains(c.candidates, it)
}

// person checks whom an event is counted for.
func (c *check) person(r *row, it *item) {
	link := c.links[it.anonID]
	switch {
	case it.userID != "":
		if r.Person != it.userID {
			c.fault("the person is %q, not the event's own user: %s", r.Person, it.text)
		}
	case link != nil && link.acked && !c.mayLack:
		if r.Person != link.userID {
			c.fault("the person is %q, not %q, to whom the anon_id was linked: %s", r.Person, link.userID, it.text)
		}
	case r.Person != it.anonID && (link == nil || !link.sent || r.Person != link.userID):
		c.fault("the person is %q: %s", r.Person, it.text)
	}
}

func (c *check) claim(claim *claim) {
	n := c.claims[claim]
	if n > 1 {
		c.fault("stored %d times: event %s by a %s key", n, claim.id, claim.kind)
	}
	if n == 0 && claim.acked {
		c.lack(1, "event %s by a %s key", claim.id, claim.kind)
	}
}

func (c *check) idless(it *item) {
	n := c.items[it]
	if n > it.deliveries {
		c.fault("stored %d times, delivered %d times: %s", n, it.deliveries, it.text)
	}
	if n < it.acks {
		c.lack(it.acks-n, "%s", it.text)
	}
}

func (c *check) lack(n int, format string, args ...any) {
	c.lacking += n
	if !c.mayLack {
		c.fault("acknowledged but not stored: "+format, args...)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// equalJSON compares JSON up to white space; absent equals null.
func equalJSON(a, b []byte) bool {
	return bytes.Equal(compact(a), compact(b))
}

func compact(a []byte) []byte {
	if len(a) == 0 {
		return []byte("null")
	}
	var out bytes.Buffer
	if err := json.Compact(&out, a); err != nil {
		return a
	}
	return out.Bytes()
}
