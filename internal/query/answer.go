package query

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/actionpulse/actionpulse/internal/record"
)

type trendAnswer struct {
	Series        []series `json:"series"`
	StoredThrough string   `json:"stored_through"`
}

type series struct {
	Event  *string `json:"event"`
	Points []point `json:"points"`
}

type point struct {
	At    string `json:"at"`
	Value int64  `json:"value"`
}

func newTrendAnswer(q Trend, buckets []Bucket, points []Point, stored string) trendAnswer {
	values := make(map[string]map[int64]int64)
	for _, p := range points {
		if values[p.Event] == nil {
			values[p.Event] = map[int64]int64{}
		}
		values[p.Event][p.Key] += p.Value
	}
	fill := func(event string) []point {
		list := make([]point, len(buckets))
		for i, b := range buckets {
			list[i] = point{At: secondText(b.At), Value: values[event][b.Key]}
		}
		return list
	}
	if q.Events == nil {
		return trendAnswer{Series: []series{{Points: fill("")}}, StoredThrough: stored}
	}
	answer := trendAnswer{Series: make([]series, len(q.Events)), StoredThrough: stored}
	for i, event := range q.Events {
		answer.Series[i] = series{Event: &event, Points: fill(event)}
	}
	return answer
}

type breakdownAnswer struct {
	Items         []group `json:"items"`
	Other         int64   `json:"other"`
	StoredThrough string  `json:"stored_through"`
}

type group struct {
	Key   *string `json:"key"`
	Value int64   `json:"value"`
}

func newBreakdownAnswer(groups Groups, stored string) breakdownAnswer {
	answer := breakdownAnswer{Items: make([]group, len(groups.Listed)), Other: groups.Other, StoredThrough: stored}
	for i, g := range groups.Listed {
		answer.Items[i] = group(g)
	}
	return answer
}

type funnelAnswer struct {
	Steps         []funnelStep `json:"steps"`
	StoredThrough string       `json:"stored_through"`
}

type funnelStep struct {
	Event   string `json:"event"`
	Persons int64  `json:"persons"`
}

func newFunnelAnswer(q Funnel, persons []int64, stored string) funnelAnswer {
	answer := funnelAnswer{Steps: make([]funnelStep, len(q.Steps)), StoredThrough: stored}
	for i := range q.Steps {
		answer.Steps[i] = funnelStep{Event: q.Steps[i].Event, Persons: persons[i]}
	}
	return answer
}

type retentionAnswer struct {
	Cohorts       []cohort `json:"cohorts"`
	StoredThrough string   `json:"stored_through"`
}

type cohort struct {
	At       string  `json:"at"`
	Size     int64   `json:"size"`
	Returned []int64 `json:"returned"`
}

// newRetentionAnswer lists every cohort of the range. A cohort's returned ends
// with the last interval that the range reaches: what lies past it is not
// known to be zero.
func newRetentionAnswer(q Retention, buckets []Bucket, cells []Cohort, stored string) retentionAnswer {
	answer := retentionAnswer{Cohorts: make([]cohort, len(buckets)), StoredThrough: stored}
	index := make(map[int64]int, len(buckets))
	last := q.Calendar.Ordinal(buckets[len(buckets)-1].Key)
	for i, b := range buckets {
		ordinal := q.Calendar.Ordinal(b.Key)
		index[ordinal] = i
		answer.Cohorts[i] = cohort{
			At:       secondText(b.At),
			Returned: make([]int64, max(1, min(int64(q.Periods), last-ordinal+1))),
		}
	}
	for _, cell := range cells {
		i, ok := index[cell.Ordinal]
		if !ok {
			continue
		}
		c := &answer.Cohorts[i]
		switch {
		case cell.Offset < 0:
			c.Size = cell.Value
		case cell.Offset < int64(len(c.Returned)):
			c.Returned[cell.Offset] = cell.Value
		}
	}
	return answer
}

type eventsAnswer struct {
	Items         []eventItem `json:"items"`
	NextCursor    *string     `json:"next_cursor"`
	StoredThrough string      `json:"stored_through"`
}

type eventItem struct {
	EventID    string          `json:"event_id"`
	Event      string          `json:"event"`
	TS         string          `json:"ts"`
	ReceivedAt string          `json:"received_at"`
	TSStatus   string          `json:"ts_status"`
	ClientTS   any             `json:"client_ts,omitempty"`
	AnonID     *string         `json:"anon_id"`
	UserID     *string         `json:"user_id"`
	Person     string          `json:"person"`
	SessionID  *string         `json:"session_id"`
	KeyKind    string          `json:"key_kind"`
	Properties json.RawMessage `json:"properties"`
	Context    json.RawMessage `json:"context"`
}

func newEventsAnswer(q Events, events []Event, stored string) eventsAnswer {
	answer := eventsAnswer{StoredThrough: stored}
	if len(events) > q.Limit {
		events = events[:q.Limit]
		answer.NextCursor = new(events[q.Limit-1].Cursor.String())
	}
	answer.Items = make([]eventItem, len(events))
	for i := range events {
		answer.Items[i] = newEventItem(&events[i])
	}
	return answer
}

func newEventItem(e *Event) eventItem {
	status := record.TSStatus(e.TSStatus)
	item := eventItem{
		EventID:    uuidText(e.EventID),
		Event:      e.Event,
		TS:         milliText(e.TS),
		ReceivedAt: milliText(e.Received),
		TSStatus:   status.String(),
		AnonID:     present(e.AnonID),
		UserID:     present(e.UserID),
		Person:     e.Person,
		SessionID:  present(e.SessionID),
		KeyKind:    record.KeyKind(e.KeyKind).String(),
		Properties: object(e.Properties),
		Context:    object(e.Context),
	}
	if status == record.TSClampedPast || status == record.TSClampedFuture {
		item.ClientTS = clientTime(e.ClientTS)
	}
	return item
}

// object shows stored JSON as it is. Text that is no JSON, which intake lets
// nobody store, is shown as a string rather than failing the whole page.
func object(stored []byte) json.RawMessage {
	if len(stored) == 0 || json.Valid(stored) {
		return stored
	}
	quoted, err := json.Marshal(string(stored))
	if err != nil {
		return nil
	}
	return quoted
}

// clientTime shows a time that may lie in no year that RFC 3339 can write; it
// is then the number that the client sent.
func clientTime(ms int64) any {
	if t := time.UnixMilli(ms).UTC(); t.Year() >= 0 && t.Year() <= 9999 {
		return milliText(ms)
	}
	return ms
}

func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// String returns the opaque form.
func (c Cursor) String() string {
	b := binary.AppendVarint(nil, c.TS)
	b = binary.AppendUvarint(b, c.Seq)
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(s string) (Cursor, bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return Cursor{}, false
	}
	ts, n := binary.Varint(b)
	if n <= 0 {
		return Cursor{}, false
	}
	seq, m := binary.Uvarint(b[n:])
	if m <= 0 || n+m != len(b) {
		return Cursor{}, false
	}
	return Cursor{TS: ts, Seq: seq}, true
}

func milliText(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

func secondText(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05Z")
}

func uuidText(id [16]byte) string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
