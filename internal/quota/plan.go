package quota

import (
	"maps"
	"slices"
)

// Plan is what an organization may add in a month of UTC.
type Plan struct {
	// Name is the operator's. The plan of those that have none has no name and
	// no limits.
	Name string
	// Events and Storage, in bytes, are the limits; 0 is none.
	Events  int64
	Storage int64
	// Trial says that a refusal is trial_quota_exceeded.
	Trial bool
}

// Plans are those of the settings. They do not change.
type Plans struct {
	byName   map[string]*Plan
	standard *Plan
}

// NewPlans returns plans. standard names the one of organizations without a
// plan of their own; empty is no limit.
func NewPlans(all []Plan, standard string) Plans {
	p := Plans{byName: make(map[string]*Plan, len(all)), standard: &Plan{}}
	for i := range all {
		p.byName[all[i].Name] = &all[i]
	}
	if found := p.byName[standard]; found != nil {
		p.standard = found
	}
	return p
}

// Has reports whether there is a plan of this name.
func (p Plans) Has(name string) bool { return p.byName[name] != nil }

// Names are the names in order.
func (p Plans) Names() []string { return slices.Sorted(maps.Keys(p.byName)) }

// Of returns the plan in force for an organization whose own plan has this
// name. If the settings have no such plan, it is the default one: a name that
// was dropped from them neither stops a customer nor lifts a limit that the
// operator has set for everybody.
func (p Plans) Of(name string) *Plan {
	if found := p.byName[name]; found != nil {
		return found
	}
	return p.standard
}
