package api

// Question is what every query has in common.
type Question struct {
	From     string        `json:"from"               doc:"The first moment that counts."             format:"date-time"`
	To       string        `json:"to"                 doc:"The first moment that counts no more."     format:"date-time"`
	Where    []QueryFilter `json:"where,omitempty"    doc:"Filters that must all hold."               maxItems:"50"`
	Timezone string        `json:"timezone,omitempty" doc:"An IANA name; where days begin. UTC if absent."`
}

// QueryFilter keeps the events whose property compares as stated.
type QueryFilter struct {
	Property string `json:"property"        doc:"properties.…, context.… or traits.… of the person."`
	Op       string `json:"op"              enum:"eq,ne,in,contains,gt,gte,lt,lte,set,not_set"`
	Value    any    `json:"value,omitempty" doc:"A string, a number or a boolean; a list of them for in; absent for set and not_set."`
}

// TrendQuery asks for a value per interval.
type TrendQuery struct {
	Type string `json:"type" enum:"trend"`
	Question
	Interval string `json:"interval"          enum:"hour,day,week,month,year"`
	Measure  string `json:"measure,omitempty" doc:"What is counted; count if absent." enum:"count,persons"`
	Event    any    `json:"event,omitempty"   doc:"A name, or up to 50 names for one series each. Absent: one series of all events."`
}

// BreakdownQuery asks for a value per key.
type BreakdownQuery struct {
	Type string `json:"type" enum:"breakdown"`
	Question
	By      string `json:"by"                doc:"event, or a property as in a filter."`
	Event   string `json:"event,omitempty"   doc:"Narrows to one event."`
	Measure string `json:"measure,omitempty" doc:"What is counted; count if absent."   enum:"count,persons"`
	Limit   int    `json:"limit,omitempty"   doc:"How many keys; 20 if absent."        maximum:"1000"       minimum:"1"`
}

// FunnelQuery asks how many persons went through steps in order.
type FunnelQuery struct {
	Type string `json:"type" enum:"funnel"`
	Question
	Steps  []FunnelQueryStep `json:"steps"  maxItems:"10"                                                                minItems:"1"`
	Window string            `json:"window" doc:"How long after the first step the last may come, like 30m, 24h or 7d."`
}

// FunnelQueryStep is one step.
type FunnelQueryStep struct {
	Event string        `json:"event"`
	Where []QueryFilter `json:"where,omitempty" maxItems:"50"`
}

// RetentionQuery asks how many of those who began came back.
type RetentionQuery struct {
	Type string `json:"type" enum:"retention"`
	Question
	StartEvent  string `json:"start_event"`
	ReturnEvent string `json:"return_event"`
	Interval    string `json:"interval"          enum:"day,week,month"`
	Periods     int    `json:"periods,omitempty" doc:"How many intervals; 8 if absent." maximum:"1000" minimum:"1"`
}

// EventsQuery asks for the latest events. From and To may be absent.
type EventsQuery struct {
	Type     string        `json:"type"               enum:"events"`
	From     string        `json:"from,omitempty"     format:"date-time"`
	To       string        `json:"to,omitempty"       format:"date-time"`
	Where    []QueryFilter `json:"where,omitempty"    maxItems:"50"`
	Timezone string        `json:"timezone,omitempty"`
	Event    string        `json:"event,omitempty"    doc:"Narrows to one event."`
	Person   string        `json:"person,omitempty"   doc:"A user id or an anon_id."`
	Limit    int           `json:"limit,omitempty"    doc:"How many events; 50 if absent."                maximum:"200" minimum:"1"`
	Cursor   string        `json:"cursor,omitempty"   doc:"next_cursor of the answer before."`
}

// TrendAnswer has one series for each event that was asked for.
type TrendAnswer struct {
	Series []TrendSeries `json:"series"`
	Stored
}

// Stored says how much an answer covers.
type Stored struct {
	StoredThrough string `json:"stored_through" doc:"Everything acknowledged before this time is in the answer." format:"date-time"`
}

// TrendSeries is one line of a trend. Event is null if it counts all events.
type TrendSeries struct {
	Event  *string      `json:"event"`
	Points []TrendPoint `json:"points"`
}

// TrendPoint is the value of the interval that begins at At.
type TrendPoint struct {
	At    string `json:"at"    format:"date-time"`
	Value int64  `json:"value"`
}

// BreakdownAnswer lists the largest keys; Other is the measure of the rest.
type BreakdownAnswer struct {
	Items []BreakdownItem `json:"items"`
	Other int64           `json:"other"`
	Stored
}

// BreakdownItem is one key. It is null for events without the property.
type BreakdownItem struct {
	Key   *string `json:"key"`
	Value int64   `json:"value"`
}

// FunnelAnswer says how many persons reached each step.
type FunnelAnswer struct {
	Steps []FunnelStep `json:"steps"`
	Stored
}

// FunnelStep is one step of the answer.
type FunnelStep struct {
	Event   string `json:"event"`
	Persons int64  `json:"persons"`
}

// RetentionAnswer has one cohort for each interval.
type RetentionAnswer struct {
	Cohorts []RetentionCohort `json:"cohorts"`
	Stored
}

// RetentionCohort are the persons who began in the interval that begins at At.
// Returned counts those who came back, by the intervals since.
type RetentionCohort struct {
	At       string  `json:"at"       format:"date-time"`
	Size     int64   `json:"size"`
	Returned []int64 `json:"returned"`
}

// EventsAnswer is a page of events, the latest first.
type EventsAnswer struct {
	Items      []StoredEvent `json:"items"`
	NextCursor *string       `json:"next_cursor"`
	Stored
}

// StoredEvent is one event as it is stored.
type StoredEvent struct {
	EventID    string         `json:"event_id"            format:"uuid"`
	Event      string         `json:"event"`
	TS         string         `json:"ts"                  format:"date-time"`
	ReceivedAt string         `json:"received_at"         format:"date-time"`
	TSStatus   string         `json:"ts_status"           doc:"What became of the client's ts." enum:"ok,absent,clamped_past,clamped_future,skew_corrected"`
	ClientTS   any            `json:"client_ts,omitempty" doc:"The client's own ts, where it was not taken: a time, or a number that is none."`
	AnonID     *string        `json:"anon_id"`
	UserID     *string        `json:"user_id"`
	Person     string         `json:"person"`
	SessionID  *string        `json:"session_id"`
	KeyKind    string         `json:"key_kind"            enum:"browser,server,legacy"`
	Properties map[string]any `json:"properties"`
	Context    map[string]any `json:"context"`
}
