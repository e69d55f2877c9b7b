// Package query owns the questions that can be asked of stored events: their
// JSON form, their rules and their meaning in terms of time zones, windows and
// funnels. It asks the event store through a small interface and never writes.
//
// Invariants:
//   - a request is either refused with the member that is at fault or answered
//     to the letter; no member is ignored;
//   - stored_through never says more than is true.
package query

import "context"

// Measure says what is counted.
type Measure string

// The measures.
const (
	Count   Measure = "count"
	Persons Measure = "persons"
)

// Scope is what every question has in common.
type Scope struct {
	Project uint32
	// From and To bound the events' time, half open, in milliseconds since
	// 1970.
	From, To int64
	Where    []Filter
}

// Trend asks for a value per interval.
type Trend struct {
	Scope
	Calendar Calendar
	Measure  Measure
	// Events are the names to count, one series each; nil means one series of
	// all events.
	Events []string
}

// Point is the value of one bucket of a trend. Buckets without events have
// none.
type Point struct {
	// Event is empty for the series of all events.
	Event string
	// Key is a bucket's key in the calendar.
	Key   int64
	Value int64
}

// Breakdown asks for a value per key.
type Breakdown struct {
	Scope
	// By is the property whose values are the keys; nil means the event name.
	By *Property
	// Event narrows to one event name; nil means all.
	Event   *string
	Measure Measure
	// Limit is how many keys are listed.
	Limit int
}

// Group is one key of a breakdown.
type Group struct {
	// Key is nil where the property is absent.
	Key   *string
	Value int64
}

// Groups are the listed keys, by value descending, then key, absent last;
// Other is the measure over everything not listed.
type Groups struct {
	Listed []Group
	Other  int64
}

// Step is one step of a funnel.
type Step struct {
	Event string
	Where []Filter
}

// Funnel asks how many persons went through steps in order.
type Funnel struct {
	Scope
	Steps []Step
	// Window is the longest time from the first step to the last, in
	// milliseconds.
	Window int64
}

// Retention asks who came back, by the interval of a person's first start.
type Retention struct {
	Scope
	Calendar    Calendar
	StartEvent  string
	ReturnEvent string
	Periods     int
}

// Cohort is one interval's persons. Cohorts without persons have none.
type Cohort struct {
	// Ordinal numbers the interval, see Calendar.Ordinal.
	Ordinal int64
	// Offset is how many intervals later; -1 stands for the cohort's size.
	Offset int64
	Value  int64
}

// Events asks for the latest events.
type Events struct {
	Scope
	// Event and Person narrow the list; nil means all. Person is a user's id,
	// or an anon id, which means the events sent with it.
	Event, Person *string
	Limit         int
	// Before is where the previous page ended; nil means the start.
	Before *Cursor
}

// Cursor is a place in the order of events: by time, then position.
type Cursor struct {
	TS  int64
	Seq uint64
}

// Event is one stored event. Strings are empty and JSON is nil when absent.
type Event struct {
	Cursor
	EventID    [16]byte
	Event      string
	Received   int64
	ClientTS   int64
	TSStatus   uint8
	AnonID     string
	UserID     string
	Person     string
	SessionID  string
	KeyKind    uint8
	Properties []byte
	Context    []byte
}

// State is the position and the window time up to which the store that
// answered a question holds the log.
type State struct {
	Position uint64
	Received int64
}

// Store answers questions. Every answer is of one committed state, which is
// returned with it. When the context ends the call ends soon after, with an
// error that wraps the context's cause.
type Store interface {
	Trend(ctx context.Context, q Trend) ([]Point, State, error)
	Breakdown(ctx context.Context, q Breakdown) (Groups, State, error)
	// Funnel returns the persons that reached each step.
	Funnel(ctx context.Context, q Funnel) ([]int64, State, error)
	Retention(ctx context.Context, q Retention) ([]Cohort, State, error)
	// Events returns the newest first, one more than the limit if there are
	// more.
	Events(ctx context.Context, q Events) ([]Event, State, error)
	// Totals returns a value for each window.
	Totals(ctx context.Context, q Totals) ([]int64, State, error)
}

// Progress says what has been acknowledged. Decided returns the position of
// the last item that may have been acknowledged and a window time before which
// nothing after that position was acknowledged.
type Progress interface {
	Decided() (position uint64, windowTime int64)
}
