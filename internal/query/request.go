package query

import (
	"bytes"
	"math"
	"strconv"
	"time"
	_ "time/tzdata" // time zones on machines that have none

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/fault"
)

// The most a request may ask for.
const (
	maxFilters  = 50
	maxOperands = 1000
	maxSeries   = 50
	maxSteps    = 10
	maxPeriods  = 1000
	maxName     = 1000
	// maxPoints is how many points a series may have.
	maxPoints = 50_000
)

// common is what every request has. A member that is null counts as absent.
type common struct {
	Type     string        `json:"type"`
	From     *string       `json:"from"`
	To       *string       `json:"to"`
	Where    []whereClause `json:"where"`
	Timezone *string       `json:"timezone"`
}

type whereClause struct {
	Property *string        `json:"property"`
	Op       *string        `json:"op"`
	Value    jsontext.Value `json:"value"`
}

// scope reads what all but the list of events demand.
func (c *common) scope() (Scope, *time.Location, error) {
	for _, bound := range []struct {
		field string
		value *string
	}{{"from", c.From}, {"to", c.To}} {
		if bound.value == nil {
			return Scope{}, nil, fault.Field(bound.field, "%s is required", bound.field)
		}
	}
	return c.openScope()
}

// openScope is scope where both bounds may be absent.
func (c *common) openScope() (Scope, *time.Location, error) {
	from, err := bound("from", c.From, math.MinInt64)
	if err != nil {
		return Scope{}, nil, err
	}
	to, err := bound("to", c.To, math.MaxInt64)
	if err != nil {
		return Scope{}, nil, err
	}
	if from >= to {
		return Scope{}, nil, fault.Field("to", "to must be later than from")
	}
	zone, err := c.zone()
	if err != nil {
		return Scope{}, nil, err
	}
	where, err := filters("where", c.Where)
	return Scope{From: from, To: to, Where: where}, zone, err
}

// bound reads a time as the first millisecond that is not before it.
func bound(field string, value *string, absent int64) (int64, error) {
	if value == nil {
		return absent, nil
	}
	t, err := time.Parse(time.RFC3339Nano, *value)
	if err != nil {
		return 0, fault.Field(field, "%s must be a time as in RFC 3339, like 2024-01-01T00:00:00Z", field)
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms, nil
}

func (c *common) zone() (*time.Location, error) {
	if c.Timezone == nil {
		return time.UTC, nil
	}
	// The two names that LoadLocation gives a meaning of its own.
	if *c.Timezone != "" && *c.Timezone != "Local" {
		if zone, err := time.LoadLocation(*c.Timezone); err == nil {
			return zone, nil
		}
	}
	return nil, fault.Field("timezone", "timezone must be an IANA name like Europe/Berlin")
}

func filters(field string, clauses []whereClause) ([]Filter, error) {
	if len(clauses) > maxFilters {
		return nil, fault.Field(field, "at most %d filters", maxFilters)
	}
	list := make([]Filter, 0, len(clauses))
	for i := range clauses {
		f, err := clauses[i].filter(field + "[" + strconv.Itoa(i) + "]")
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

func (w *whereClause) filter(field string) (Filter, error) {
	if w.Property == nil {
		return Filter{}, fault.Field(field+".property", "property is required")
	}
	property, ok := parseProperty(*w.Property)
	if !ok {
		return Filter{}, fault.Field(field+".property", "property must be properties.…, context.… or traits.…")
	}
	if w.Op == nil {
		return Filter{}, fault.Field(field+".op", "op is required")
	}
	f := Filter{Property: property, Op: Op(*w.Op)}
	values, err := operands(field+".value", f.Op, w.Value)
	f.Values = values
	if err != nil {
		return Filter{}, err
	}
	return f, f.check(field)
}

// operands reads the value of a filter: a list for In, else one.
func operands(field string, op Op, raw jsontext.Value) ([]Value, error) {
	if len(raw) == 0 || raw.Kind() == 'n' {
		return nil, nil
	}
	if op != In {
		v, err := operand(field, raw)
		return []Value{v}, err
	}
	var list []jsontext.Value
	if raw.Kind() != '[' || json.Unmarshal(raw, &list) != nil {
		return nil, fault.Field(field, "value must be a list")
	}
	if len(list) == 0 || len(list) > maxOperands {
		return nil, fault.Field(field, "value must have 1 to %d elements", maxOperands)
	}
	values := make([]Value, len(list))
	for i := range list {
		v, err := operand(field+"["+strconv.Itoa(i)+"]", list[i])
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func operand(field string, raw jsontext.Value) (Value, error) {
	raw = bytes.TrimSpace(raw)
	switch raw.Kind() {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err == nil {
			return Value{Text: s}, nil
		}
	case 't', 'f':
		return Value{Text: string(raw), IsBool: true}, nil
	case '0':
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || math.IsInf(n, 0) {
			return Value{}, fault.Field(field, "the number is out of range")
		}
		return Value{Text: string(raw), Number: n, IsNumber: true}, nil
	}
	return Value{}, fault.Field(field, "value must be a string, a number or a boolean")
}

// check refuses operators that do not fit their operands.
func (f *Filter) check(field string) error {
	switch f.Op {
	case Set, NotSet:
		if len(f.Values) != 0 {
			return fault.Field(field+".value", "%s takes no value", f.Op)
		}
		return nil
	case Eq, Ne, In, Contains, Gt, Gte, Lt, Lte:
	default:
		return fault.Field(field+".op", "op must be eq, ne, in, contains, gt, gte, lt, lte, set or not_set")
	}
	if len(f.Values) == 0 {
		return fault.Field(field+".value", "%s needs a value", f.Op)
	}
	v := f.Values[0]
	switch f.Op {
	case Contains:
		if v.IsNumber || v.IsBool {
			return fault.Field(field+".value", "contains takes a string")
		}
	case Gt, Gte, Lt, Lte:
		if v.IsBool {
			return fault.Field(field+".value", "%s takes a string or a number", f.Op)
		}
	}
	return nil
}
