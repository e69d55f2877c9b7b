package query

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/fault"
)

// typeOf reads which kind of request a checked body is.
func typeOf(body []byte) (string, error) {
	var members map[string]jsontext.Value
	if jsontext.Value(body).Kind() != '{' || json.Unmarshal(body, &members) != nil {
		return "", fault.Field("body", "the body must be an object")
	}
	var name string
	if raw, ok := members["type"]; ok && json.Unmarshal(raw, &name) == nil {
		return name, nil
	}
	return "", errType()
}

func errType() error {
	return fault.Field("type", "type must be trend, breakdown, funnel, retention or events")
}

type trendRequest struct {
	common
	Interval *string        `json:"interval"`
	Measure  *string        `json:"measure"`
	Event    jsontext.Value `json:"event"`
}

func (r *trendRequest) trend() (Trend, []Bucket, error) {
	scope, zone, err := r.scope()
	if err != nil {
		return Trend{}, nil, err
	}
	interval, err := choice("interval", r.Interval, Hour, Day, Week, Month, Year)
	if err != nil {
		return Trend{}, nil, err
	}
	measure, err := measureOf(r.Measure)
	if err != nil {
		return Trend{}, nil, err
	}
	events, err := eventNames(r.Event)
	if err != nil {
		return Trend{}, nil, err
	}
	calendar := NewCalendar(interval, zone, scope.From, scope.To)
	buckets, ok := calendar.Buckets(maxPoints)
	if !ok {
		return Trend{}, nil, fault.Field("interval", "more than %d points a series: take a longer interval or a shorter range", maxPoints)
	}
	return Trend{Scope: scope, Calendar: calendar, Measure: measure, Events: events}, buckets, nil
}

// eventNames reads a name, a list of names or nothing.
func eventNames(raw jsontext.Value) ([]string, error) {
	switch raw.Kind() {
	case '"':
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return nil, fault.Field("event", "event must be a name or a list of names")
		}
		return []string{name}, checkName("event", name)
	case '[':
		var names []string
		if err := json.Unmarshal(raw, &names); err != nil || len(names) == 0 || len(names) > maxSeries {
			return nil, fault.Field("event", "event must be a name or a list of 1 to %d names", maxSeries)
		}
		for i, name := range names {
			if err := checkName("event["+strconv.Itoa(i)+"]", name); err != nil {
				return nil, err
			}
		}
		return names, nil
	case 'n', 0:
		return nil, nil
	default:
		return nil, fault.Field("event", "event must be a name or a list of names")
	}
}

func checkName(field, name string) error {
	if name == "" || len(name) > maxName {
		return fault.Field(field, "%s must have 1 to %d bytes", field, maxName)
	}
	return nil
}

type breakdownRequest struct {
	common
	By      *string `json:"by"`
	Event   *string `json:"event"`
	Measure *string `json:"measure"`
	Limit   *int64  `json:"limit"`
}

func (r *breakdownRequest) breakdown() (Breakdown, error) {
	scope, _, err := r.scope()
	if err != nil {
		return Breakdown{}, err
	}
	q := Breakdown{Scope: scope, Event: r.Event}
	if r.By == nil {
		return Breakdown{}, fault.Field("by", "by is required")
	}
	if *r.By != "event" {
		property, ok := parseProperty(*r.By)
		if !ok {
			return Breakdown{}, fault.Field("by", `by must be "event", properties.…, context.… or traits.…`)
		}
		q.By = &property
	}
	if r.Event != nil {
		if err := checkName("event", *r.Event); err != nil {
			return Breakdown{}, err
		}
	}
	if q.Measure, err = measureOf(r.Measure); err != nil {
		return Breakdown{}, err
	}
	q.Limit, err = within("limit", r.Limit, 20, 1000)
	return q, err
}

type funnelRequest struct {
	common
	Steps  []stepClause `json:"steps"`
	Window *string      `json:"window"`
}

type stepClause struct {
	Event *string       `json:"event"`
	Where []whereClause `json:"where"`
}

func (r *funnelRequest) funnel() (Funnel, error) {
	scope, _, err := r.scope()
	if err != nil {
		return Funnel{}, err
	}
	if len(r.Steps) < 1 || len(r.Steps) > maxSteps {
		return Funnel{}, fault.Field("steps", "steps must have 1 to %d elements", maxSteps)
	}
	q := Funnel{Scope: scope, Steps: make([]Step, len(r.Steps))}
	for i := range r.Steps {
		field := "steps[" + strconv.Itoa(i) + "]"
		if r.Steps[i].Event == nil {
			return Funnel{}, fault.Field(field+".event", "event is required")
		}
		q.Steps[i].Event = *r.Steps[i].Event
		if err := checkName(field+".event", q.Steps[i].Event); err != nil {
			return Funnel{}, err
		}
		if q.Steps[i].Where, err = filters(field+".where", r.Steps[i].Where); err != nil {
			return Funnel{}, err
		}
	}
	q.Window, err = duration("window", r.Window)
	return q, err
}

// duration reads a positive length of time like "24h", "30m" or "7d", in
// milliseconds.
func duration(field string, value *string) (int64, error) {
	if value == nil {
		return 0, fault.Field(field, "%s is required", field)
	}
	text := *value
	days := int64(0)
	if before, after, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil {
			return 0, errDuration(field)
		}
		days, text = int64(n), after
	}
	rest := time.Duration(0)
	if text != "" {
		var err error
		if rest, err = time.ParseDuration(text); err != nil || rest < 0 {
			return 0, errDuration(field)
		}
	}
	ms := days*dayMS + rest.Milliseconds()
	if ms <= 0 || ms > math.MaxInt64/4 {
		return 0, errDuration(field)
	}
	return ms, nil
}

func errDuration(field string) error {
	return fault.Field(field, `%s must be a length of time like "24h", "30m" or "7d"`, field)
}

type retentionRequest struct {
	common
	StartEvent  *string `json:"start_event"`
	ReturnEvent *string `json:"return_event"`
	Interval    *string `json:"interval"`
	Periods     *int64  `json:"periods"`
}

func (r *retentionRequest) retention() (Retention, []Bucket, error) {
	scope, zone, err := r.scope()
	if err != nil {
		return Retention{}, nil, err
	}
	q := Retention{Scope: scope}
	for _, event := range []struct {
		field string
		value *string
		to    *string
	}{{"start_event", r.StartEvent, &q.StartEvent}, {"return_event", r.ReturnEvent, &q.ReturnEvent}} {
		if event.value == nil {
			return Retention{}, nil, fault.Field(event.field, "%s is required", event.field)
		}
		if err := checkName(event.field, *event.value); err != nil {
			return Retention{}, nil, err
		}
		*event.to = *event.value
	}
	interval, err := choice("interval", r.Interval, Day, Week, Month)
	if err != nil {
		return Retention{}, nil, err
	}
	if q.Periods, err = within("periods", r.Periods, defaultPeriods, maxPeriods); err != nil {
		return Retention{}, nil, err
	}
	q.Calendar = NewCalendar(interval, zone, scope.From, scope.To)
	cohorts, ok := q.Calendar.Buckets(maxCohorts)
	if !ok {
		return Retention{}, nil, fault.Field("interval", "more than %d cohorts: take a longer interval or a shorter range", maxCohorts)
	}
	return q, cohorts, nil
}

const (
	defaultPeriods = 8
	maxCohorts     = 1000
)

type eventsRequest struct {
	common
	Event  *string `json:"event"`
	Person *string `json:"person"`
	Limit  *int64  `json:"limit"`
	Cursor *string `json:"cursor"`
}

func (r *eventsRequest) events() (Events, error) {
	scope, _, err := r.openScope()
	if err != nil {
		return Events{}, err
	}
	q := Events{Scope: scope, Event: r.Event, Person: r.Person}
	if r.Event != nil {
		if err := checkName("event", *r.Event); err != nil {
			return Events{}, err
		}
	}
	if r.Person != nil {
		if err := checkName("person", *r.Person); err != nil {
			return Events{}, err
		}
	}
	if q.Limit, err = within("limit", r.Limit, 50, 200); err != nil {
		return Events{}, err
	}
	if r.Cursor != nil {
		cursor, ok := parseCursor(*r.Cursor)
		if !ok {
			return Events{}, fault.Field("cursor", "cursor must be a next_cursor of an earlier answer")
		}
		q.Before = &cursor
	}
	return q, nil
}

// measureOf reads a measure; absent means a count of events.
func measureOf(value *string) (Measure, error) {
	if value == nil {
		return Count, nil
	}
	return choice("measure", value, Count, Persons)
}

// choice reads one of several names.
func choice[T ~string](field string, value *string, options ...T) (T, error) {
	names := make([]string, len(options))
	for i, option := range options {
		if value != nil && *value == string(option) {
			return option, nil
		}
		names[i] = string(option)
	}
	return "", fault.Field(field, "%s must be %s", field, strings.Join(names, " or "))
}

// within reads a whole number from 1 to highest.
func within(field string, value *int64, absent, highest int) (int, error) {
	if value == nil {
		return absent, nil
	}
	if *value < 1 || *value > int64(highest) {
		return 0, fault.Field(field, "%s must be 1 to %d", field, highest)
	}
	return int(*value), nil
}
