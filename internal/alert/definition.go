package alert

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones on machines that have none
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/query"
)

// Definition is what the maker of an alert says.
type Definition struct {
	// Name is 1 to 200 characters.
	Name string
	Source
	Length Length
	// Timezone is an IANA name: where days begin.
	Timezone  string
	Condition Condition
	// For is how many periods in a row must be bad until it fires,
	// ResolveAfter how many must be good until it is resolved; 1 to 100.
	For, ResolveAfter int64
}

// Source is what is watched.
type Source struct {
	Kind Kind
	// Metric holds the members measure, event and where of a trend, as JSON;
	// empty for the health of intake.
	Metric json.RawMessage
}

// Kind names a source.
type Kind string

// The kinds of sources. All but Trend tell of the health of intake.
const (
	Trend Kind = "trend"
	// DuplicateRate is how many of the accepted items were repeats, 0 to 1.
	DuplicateRate Kind = "duplicate_rate"
	// RejectionRate is how many of all items were rejected, 0 to 1.
	RejectionRate Kind = "rejection_rate"
	// LagSeconds is how long the oldest record that is not in the event store
	// has waited, the longest within the period.
	LagSeconds Kind = "lag_seconds"
)

func (k Kind) isRate() bool { return k == DuplicateRate || k == RejectionRate }

// Condition is the rule by which a period is bad.
type Condition struct {
	Type      ConditionType `json:"type"`
	Direction Direction     `json:"direction"`
	// Value is what a threshold is compared with.
	Value float64 `json:"value,omitempty"`
	// Percent is by how much a change is bad.
	Percent  float64  `json:"percent,omitempty"`
	Baseline Baseline `json:"baseline,omitempty"`
	// Periods is how many periods, or days, a mean is of; 0 for another
	// baseline.
	Periods int64 `json:"periods,omitempty"`
	// Minimum is the volume below which a change is not bad, and a rate is not
	// known: events or persons, items, or seconds of lag.
	Minimum float64 `json:"minimum"`
}

// ConditionType says what a value is compared with.
type ConditionType string

// The types of conditions.
const (
	Threshold ConditionType = "threshold"
	Change    ConditionType = "change"
)

// Direction says which side is bad.
type Direction string

// The directions: the first two are those of thresholds.
const (
	Above Direction = "above"
	Below Direction = "below"
	Up    Direction = "up"
	Down  Direction = "down"
)

// Baseline says what a change is measured against.
type Baseline string

// The baselines.
const (
	PreviousPeriod Baseline = "previous_period"
	MeanOfPeriods  Baseline = "mean_of_periods"
	MeanOfDays     Baseline = "mean_of_days"
)

const (
	// DefaultMinimum is the minimum where none is given and one counts.
	DefaultMinimum = 10
	// percent is the whole in per cent.
	percent = 100

	nameLimit    = 200 // characters
	maxRun       = 100
	maxPeriods   = 30
	maxThreshold = 1e15
	maxPercent   = 1e6
)

// same says whether two definitions watch the same in the same way. Names do
// not matter.
func (d *Definition) same(other *Definition) bool {
	return d.Kind == other.Kind && bytes.Equal(d.Metric, other.Metric) && d.Length == other.Length && d.Timezone == other.Timezone &&
		d.Condition == other.Condition && d.For == other.For && d.ResolveAfter == other.ResolveAfter
}

// periods is how many periods the baseline is made of.
func (c *Condition) periods() int { return int(max(c.Periods, 1)) }

// Validate checks the definition. Fault: validation_failed, with the member at
// fault.
func (d *Definition) Validate() error {
	if !utf8.ValidString(d.Name) || utf8.RuneCountInString(d.Name) > nameLimit || strings.TrimSpace(d.Name) == "" ||
		strings.ContainsFunc(d.Name, unicode.IsControl) {
		return fault.Field("name", "name is a text of 1 to %d characters without control characters, and not blank", nameLimit)
	}
	if _, err := d.parse(); err != nil {
		return err
	}
	if _, ok := fixed[d.Length]; !ok && d.Length != Day {
		return fault.Field("period", "period must be 5m, 15m, 30m, 1h, 6h, 12h or 1d")
	}
	if _, err := time.LoadLocation(d.Timezone); err != nil || d.Timezone == "" || d.Timezone == "Local" {
		return fault.Field("timezone", "timezone must be an IANA name like Europe/Berlin")
	}
	if d.For < 1 || d.For > maxRun {
		return fault.Field("for", "for must be 1 to %d", maxRun)
	}
	if d.ResolveAfter < 1 || d.ResolveAfter > maxRun {
		return fault.Field("resolve_after", "resolve_after must be 1 to %d", maxRun)
	}
	return d.Condition.validate(d.Kind)
}

// parse reads what a trend counts, by the code that queries are read by.
func (s *Source) parse() (query.Metric, error) {
	switch s.Kind {
	case Trend:
		m, err := query.ParseMetric(s.Metric)
		return m, within("source", err)
	case DuplicateRate, RejectionRate, LagSeconds:
		if len(s.Metric) > 0 {
			return query.Metric{}, fault.Field("source", "measure, event and where are members of a trend only")
		}
		return query.Metric{}, nil
	default:
		return query.Metric{}, fault.Field("source.type", "type must be trend, duplicate_rate, rejection_rate or lag_seconds")
	}
}

// within names the member at fault as one of another member.
func within(member string, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	field, _ := f.Details["field"].(string)
	return f.With("field", member+"."+field)
}

func (c *Condition) validate(k Kind) error {
	switch c.Type {
	case Threshold:
		return c.validateThreshold(k)
	case Change:
		return c.validateChange()
	default:
		return fault.Field("condition.type", "type must be threshold or change")
	}
}

func (c *Condition) validateThreshold(k Kind) error {
	switch {
	case c.Direction != Above && c.Direction != Below:
		return fault.Field("condition.direction", "direction of a threshold must be above or below")
	case !inRange(c.Value, 0, maxThreshold):
		return fault.Field("condition.value", "value must be a number from 0 to %g", maxThreshold)
	case c.Percent != 0 || c.Baseline != "" || c.Periods != 0:
		return fault.Field("condition", "percent, baseline and periods are members of a change only")
	case c.Minimum != 0 && !k.isRate():
		return fault.Field("condition.minimum", "minimum is for changes and for rates")
	}
	return c.validateMinimum()
}

func (c *Condition) validateChange() error {
	most := float64(maxPercent)
	if c.Direction == Down {
		most = percent
	}
	switch {
	case c.Direction != Up && c.Direction != Down:
		return fault.Field("condition.direction", "direction of a change must be up or down")
	case !inRange(c.Percent, 0, most) || c.Percent == 0:
		return fault.Field("condition.percent", "percent must be a number above 0 and up to %g", most)
	case !slices.Contains([]Baseline{PreviousPeriod, MeanOfPeriods, MeanOfDays}, c.Baseline):
		return fault.Field("condition.baseline", "baseline must be previous_period, mean_of_periods or mean_of_days")
	case c.Baseline == PreviousPeriod && c.Periods != 0:
		return fault.Field("condition.periods", "periods is for a mean")
	case c.Baseline != PreviousPeriod && (c.Periods < 1 || c.Periods > maxPeriods):
		return fault.Field("condition.periods", "periods must be 1 to %d", maxPeriods)
	}
	return c.validateMinimum()
}

func (c *Condition) validateMinimum() error {
	if !inRange(c.Minimum, 0, maxThreshold) {
		return fault.Field("condition.minimum", "minimum must be a number from 0 to %g", maxThreshold)
	}
	return nil
}

// inRange is false for what is no number.
func inRange(v, least, most float64) bool { return !math.IsNaN(v) && v >= least && v <= most }
