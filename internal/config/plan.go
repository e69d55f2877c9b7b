package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
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

// UnmarshalText reads the object of the settings file, and returns every fault of
// it. Members that a plan does not have are refused: a limit with a typo would be
// none.
func (p *Plans) UnmarshalText(text []byte) error {
	var value jsontext.Value
	if err := json.Unmarshal(text, &value); err != nil {
		return syntaxFault(text, err)
	}
	plans, faults := readPlans(value)
	p.byName = plans
	return errors.Join(faults...)
}

// readPlans returns the plans, or every fault of them.
func readPlans(value jsontext.Value) (map[string]Plan, []error) {
	all, err := readObject(value)
	if err != nil {
		return nil, []error{wrong(plansName, `must be an object of plans such as {"free": {"events": 10000, "storage": "1GB"}}, not %s`, found(value))}
	}
	plans := make(map[string]Plan, len(all))
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !validPlanName(name) {
			faults = append(faults, wrong(plansName, "a name must have 1 to %d characters, none of them a control character and no space at its ends, not %q", maxPlanName, shorten(name)))
			continue
		}
		r := planReader{at: plansName + "." + name}
		plans[name] = r.plan(all[name])
		faults = append(faults, r.faults...)
	}
	return plans, faults
}

func validPlanName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxPlanName && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, unicode.IsControl)
}

// planReader reads the members of the plan at, and goes on after a fault.
type planReader struct {
	at     string
	faults []error
}

func (r *planReader) wrong(at, format string, parts ...any) {
	r.faults = append(r.faults, wrong(r.at+at, format, parts...))
}

func (r *planReader) plan(value jsontext.Value) (p Plan) {
	members, err := readObject(value)
	if err != nil {
		r.wrong("", "must be an object with events, storage, trial or none of them, not %s; {} is a plan without limits", found(value))
		return p
	}
	for _, member := range slices.Sorted(maps.Keys(members)) {
		switch value := members[member]; member {
		case "events":
			p.Events = r.events(value)
		case "storage":
			p.Storage = r.storage(value)
		case "trial":
			p.Trial = value.Kind() == 't'
			if !p.Trial && value.Kind() != 'f' {
				r.wrong(".trial", "must be true or false, not %s", found(value))
			}
		default:
			r.wrong("."+member, "is not a setting; a plan may have events, storage and trial")
		}
	}
	return p
}

func (r *planReader) events(value jsontext.Value) *int64 {
	if n, ok := number(value); ok && value.Kind() == '0' && n == math.Trunc(n) && n >= 1 && n <= maxPlanEvents {
		return new(int64(n))
	}
	r.wrong(".events", "must be a whole number from 1 to %d, not %s; leave it out for no limit", maxPlanEvents, found(value))
	return nil
}

func (r *planReader) storage(value jsontext.Value) *Size {
	var size Size
	if text, ok := scalar(value); ok && size.UnmarshalText([]byte(text)) == nil && size >= 1 && size <= maxPlanStorage {
		return &size
	}
	r.wrong(".storage", `must be a size such as "1GB" or a number of bytes, from 1 to %d, not %s; leave it out for no limit`, maxPlanStorage, found(value))
	return nil
}

// faults is not called Validate: the parser would call that, and could not say
// that the plan is in the file.
func (q *Quota) faults() error {
	if _, known := q.Plans.byName[q.DefaultPlan]; q.DefaultPlan == "" || known {
		return nil
	}
	if len(q.Plans.byName) == 0 {
		return wrong("default_plan", "must be empty while there are no plans, not %q", shorten(q.DefaultPlan))
	}
	return wrong("default_plan", "must be empty or one of the plans %q, not %q", slices.Sorted(maps.Keys(q.Plans.byName)), shorten(q.DefaultPlan))
}
