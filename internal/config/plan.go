package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// plansName is the one setting that is an object in the file. In a flag or the
// environment it is that object as text.
const plansName = "plans"

// Bounds of a plan. A limit of 0 is refused: elsewhere 0 is no limit, and here
// it would be nothing at all.
const (
	maxPlanName    = 64
	maxPlanEvents  = 1_000_000_000_000_000
	maxPlanStorage = 1 << 50
)

// Quota is what organizations may add in a month.
type Quota struct {
	Plans       Plans  `name:"plans" placeholder:"JSON" help:"What organizations may add in a month, by the name of a plan: {\"free\": {\"events\": 10000, \"storage\": \"1GB\"}}. Default: no plans and no quota."`
	DefaultPlan string `name:"default_plan" placeholder:"PLAN" help:"The plan of an organization that has none of its own. Default: none, which is no quota."`
}

// Plan is what an organization may add in a month of UTC.
type Plan struct {
	// Events is how many events; nil is no limit.
	Events *int64 `json:"events,omitzero"`
	// Storage is how many bytes; nil is no limit.
	Storage *Size `json:"storage,omitzero"`
	// Trial says that a refusal is trial_quota_exceeded.
	Trial bool `json:"trial,omitzero"`
}

// Plans are the plans by name.
type Plans struct{ byName map[string]Plan }

// All returns the plans by name; it must not be changed.
func (p Plans) All() map[string]Plan { return p.byName }

// MarshalJSON gives the plans the form that they have in the settings file.
func (p Plans) MarshalJSON() ([]byte, error) {
	if p.byName == nil {
		return []byte("{}"), nil
	}
	content, err := json.Marshal(p.byName, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("write the plans: %w", err)
	}
	return content, nil
}

// UnmarshalText reads the object of the settings file. Members that a plan
// does not have are refused: a limit with a typo would be none.
func (p *Plans) UnmarshalText(text []byte) error {
	var plans map[string]*struct {
		Events  *int64    `json:"events"`
		Storage *sizeJSON `json:"storage"`
		Trial   bool      `json:"trial"`
	}
	if err := json.Unmarshal(text, &plans, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("expected an object of plans, each with events, storage, trial or none of them: %w", err)
	}
	p.byName = make(map[string]Plan, len(plans))
	for name, plan := range plans {
		if plan == nil {
			return fmt.Errorf("%q must be an object; {} is a plan without limits", name)
		}
		p.byName[name] = Plan{Events: plan.Events, Storage: (*Size)(plan.Storage), Trial: plan.Trial}
	}
	return nil
}

// sizeJSON is a size as a JSON string or number.
type sizeJSON Size

// UnmarshalJSON reads "1GB" and 1000000000.
func (s *sizeJSON) UnmarshalJSON(value []byte) error {
	if jsontext.Value(value).Kind() != '"' {
		return (*Size)(s).UnmarshalText(value)
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return fmt.Errorf("read a size: %w", err)
	}
	return (*Size)(s).UnmarshalText([]byte(text))
}

// Validate returns every fault of the plans, or nil.
func (q *Quota) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(q.Plans.byName)) {
		errs = append(errs, validPlanName(name))
		plan, at := q.Plans.byName[name], plansName+"."+name
		if plan.Events != nil {
			errs = append(errs, planLimit(at+".events", *plan.Events, maxPlanEvents))
		}
		if plan.Storage != nil {
			errs = append(errs, planLimit(at+".storage", int64(*plan.Storage), maxPlanStorage))
		}
	}
	if _, known := q.Plans.byName[q.DefaultPlan]; q.DefaultPlan != "" && !known {
		errs = append(errs, fmt.Errorf("default_plan: %q is not one of the plans %q", q.DefaultPlan, slices.Sorted(maps.Keys(q.Plans.byName))))
	}
	return errors.Join(errs...)
}

func validPlanName(name string) error {
	if name != "" && utf8.RuneCountInString(name) <= maxPlanName && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, unicode.IsControl) {
		return nil
	}
	return fmt.Errorf("%s: a name must have 1 to %d characters, none of them a control character and no space at its ends, not %q", plansName, maxPlanName, name)
}

func planLimit(name string, value, most int64) error {
	if err := between(name, value, 1, most); err != nil {
		return fmt.Errorf("%w; leave it out for no limit", err)
	}
	return nil
}
