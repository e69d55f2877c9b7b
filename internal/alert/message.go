package alert

import (
	"encoding/json"
	"fmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// firedData is what alert.fired says: the period that an entry is about.
func (a *Alert) firedData(e *Entry) api.AlertFired {
	return api.AlertFired{
		Alert: a.about(), Period: PeriodOf(e.Period), Value: e.Value, Baseline: e.Baseline, Change: e.Change(),
		FiringSince: api.TimeText(a.FiringSince), Releases: ReleasesWire(e.Releases),
	}
}

// resolvedData is what alert.resolved says.
func (a *Alert) resolvedData(e *Entry) api.AlertResolved {
	out := api.AlertResolved{
		Alert: a.about(), Reason: string(e.Reason), UserID: api.OptionalText(e.UserID), Value: e.Value, Baseline: e.Baseline,
		Change: e.Change(), FiringSince: api.TimeText(a.FiringSince), FiredMessageID: webhook.MessageID(a.FiredEntry),
		Releases: ReleasesWire(e.Releases),
	}
	if !e.Period.Start.IsZero() {
		out.Period = new(PeriodOf(e.Period))
	}
	return out
}

// Change is by how many per cent the value differs from the baseline.
func (e *Entry) Change() *float64 {
	return (&Judgement{Value: e.Value, Baseline: e.Baseline}).Change()
}

// about names the alert in a message, with the rule that it goes by.
func (a *Alert) about() api.AlertAbout {
	return api.AlertAbout{
		ID: a.ID, ProjectID: a.ProjectID, Name: a.Name, Source: SourceOf(&a.Source), Period: string(a.Length), Timezone: a.Timezone,
		Condition: ConditionOf(&a.Condition, a.Kind),
	}
}

// PeriodOf is a period as it is sent.
func PeriodOf(p Period) api.AlertPeriod {
	return api.AlertPeriod{Start: api.TimeText(p.Start), End: api.TimeText(p.End)}
}

// ReleasesWire are releases as they are sent.
func ReleasesWire(releases []Release) []api.AlertRelease {
	all := make([]api.AlertRelease, len(releases))
	for i, r := range releases {
		all[i] = api.AlertRelease{
			ID: r.ID, Version: r.Version, Environment: r.Environment, TS: api.TimeText(r.TS),
			Commit: api.OptionalText(r.Commit), URL: api.OptionalText(r.URL),
		}
	}
	return all
}

// metricMembers are the members of a trend.
type metricMembers struct {
	Measure *string           `json:"measure,omitempty"`
	Event   any               `json:"event,omitempty"`
	Where   []api.QueryFilter `json:"where,omitempty"`
}

// SourceOf is a source as it is sent.
func SourceOf(s *Source) api.AlertSource {
	out := api.AlertSource{Type: string(s.Kind)}
	var m metricMembers
	if len(s.Metric) > 0 && json.Unmarshal(s.Metric, &m) == nil {
		out.Measure, out.Event, out.Where = m.Measure, m.Event, m.Where
	}
	return out
}

// ReadSource reads a source as it was sent. What it holds is checked later.
func ReadSource(in api.AlertSource) (Source, error) {
	s := Source{Kind: Kind(in.Type)}
	if s.Kind != Trend && in.Measure == nil && in.Event == nil && in.Where == nil {
		return s, nil
	}
	metric, err := json.Marshal(metricMembers{in.Measure, in.Event, in.Where})
	if err != nil {
		return s, fmt.Errorf("encode the metric of an alert: %w", err)
	}
	s.Metric = metric
	return s, nil
}

// ConditionOf is a condition as it is sent.
func ConditionOf(c *Condition, k Kind) api.AlertCondition {
	out := api.AlertCondition{Type: string(c.Type), Direction: string(c.Direction)}
	if c.Type == Threshold {
		out.Value = &c.Value
	} else {
		out.Percent, out.Baseline = &c.Percent, new(string(c.Baseline))
	}
	if c.Periods != 0 {
		out.Periods = &c.Periods
	}
	if c.Minimum != 0 || c.Type == Change || k.isRate() {
		out.Minimum = &c.Minimum
	}
	return out
}

// ReadCondition reads a condition as it was sent, with the minimum that counts
// if it says none. What it holds is checked later, but for what is absent.
// Fault: validation_failed.
func ReadCondition(in api.AlertCondition, k Kind) (Condition, error) {
	c := Condition{Type: ConditionType(in.Type), Direction: Direction(in.Direction)}
	switch {
	case c.Type == Threshold && in.Value == nil:
		return c, fault.Field("condition.value", "value is required for a threshold")
	case c.Type == Change && in.Value != nil:
		return c, fault.Field("condition.value", "value is a member of a threshold only")
	case c.Type == Change || k.isRate():
		c.Minimum = valueOr(in.Minimum, DefaultMinimum)
	default:
		c.Minimum = valueOr(in.Minimum, 0)
	}
	c.Value, c.Percent = valueOr(in.Value, 0), valueOr(in.Percent, 0)
	c.Baseline, c.Periods = Baseline(valueOr(in.Baseline, "")), valueOr(in.Periods, 0)
	return c, nil
}

func valueOr[T any](v *T, absent T) T {
	if v == nil {
		return absent
	}
	return *v
}

// The lengths of runs where nothing is said.
const defaultRun = 1

// ReadDefinition reads a definition as it was sent. What it holds is checked
// later, but for what is absent. Fault: validation_failed.
func ReadDefinition(in api.NewAlert) (Definition, error) {
	d := Definition{
		Name: in.Name, Length: Length(in.Period), Timezone: valueOr(in.Timezone, "UTC"),
		For: valueOr(in.For, defaultRun), ResolveAfter: valueOr(in.ResolveAfter, defaultRun),
	}
	var err error
	if d.Source, err = ReadSource(in.Source); err != nil {
		return d, err
	}
	d.Condition, err = ReadCondition(in.Condition, d.Kind)
	return d, err
}

// Edit changes what a change names. Fault: validation_failed.
func (d *Definition) Edit(in api.AlertChange) (err error) {
	d.Name, d.Length, d.Timezone = valueOr(in.Name, d.Name), Length(valueOr(in.Period, string(d.Length))), valueOr(in.Timezone, d.Timezone)
	d.For, d.ResolveAfter = valueOr(in.For, d.For), valueOr(in.ResolveAfter, d.ResolveAfter)
	if in.Source != nil {
		if d.Source, err = ReadSource(*in.Source); err != nil {
			return err
		}
	}
	if in.Condition != nil {
		d.Condition, err = ReadCondition(*in.Condition, d.Kind)
	}
	return err
}
