package flow

import (
	"math"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/actionpulse/actionpulse/internal/flow/template"
)

const (
	// maxChecks is how many times a part of a schema may be held against a part
	// of an input. A schema that refers to itself more than once can ask for
	// more than there are atoms, and nothing stops the library once it began.
	maxChecks = 1_000_000
	// textPerCheck is how many steps of a regular expression count like one
	// check.
	textPerCheck = 20
)

// affordable returns an [*InputError] if checking an input takes too much.
func affordable(s *jsonschema.Schema, input any) error {
	e := &estimate{known: map[pair]int{}, values: map[*jsonschema.Schema]int{}}
	root := e.place(input)
	if e.cost(s, root) > maxChecks {
		return &InputError{Message: "takes too much work to be checked against the schema of the flow"}
	}
	return nil
}

// estimate counts what it takes to check, without doing it: each pair of a
// schema and a value is looked at once.
type estimate struct {
	known  map[pair]int
	values map[*jsonschema.Schema]int
}

// place is a value that is identified, since two may be equal.
type place struct {
	members  map[string]*place
	elements []*place
	text     int
}

type pair struct {
	schema *jsonschema.Schema
	place  *place
}

// running marks a pair that is being looked at.
const running = -1

func (e *estimate) place(value any) *place {
	switch v := value.(type) {
	case map[string]any:
		p := &place{members: make(map[string]*place, len(v))}
		for name, one := range v {
			p.members[name] = e.place(one)
		}
		return p
	case []any:
		p := &place{elements: make([]*place, len(v))}
		for i, one := range v {
			p.elements[i] = e.place(one)
		}
		return p
	case string:
		return &place{text: len(v)}
	default:
		return &place{}
	}
}

// cost returns how many checks a pair takes, or more than maxChecks.
func (e *estimate) cost(s *jsonschema.Schema, p *place) int {
	if s == nil {
		return 0
	}
	key := pair{s, p}
	if known, ok := e.known[key]; ok {
		if known == running {
			return math.MaxInt32 // it would never end
		}
		return known
	}
	if len(e.known) > maxChecks {
		return math.MaxInt32
	}
	e.known[key] = running
	total := min(e.own(s, p)+e.inPlace(s, p)+e.ofMembers(s, p)+e.ofElements(s, p), math.MaxInt32)
	e.known[key] = total
	return total
}

// own is what the keywords take that look at nothing else.
func (e *estimate) own(s *jsonschema.Schema, p *place) int {
	total := 1
	if s.Enum != nil {
		total += e.valuesOf(s, p) / 10
	}
	if s.Pattern != nil {
		total += sizeOf(s.Pattern) * p.text / textPerCheck
	}
	if s.UniqueItems {
		total += len(p.elements)
	}
	return total
}

// valuesOf returns how many values may be compared for an enum.
func (e *estimate) valuesOf(s *jsonschema.Schema, p *place) int {
	if p.members == nil && p.elements == nil {
		return len(s.Enum.Values)
	}
	count, ok := e.values[s]
	if !ok {
		count = countValues(s.Enum.Values)
		e.values[s] = count
	}
	return count
}

func countValues(value any) int {
	count := 1
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			count += countValues(one)
		}
	case map[string]any:
		for _, one := range v {
			count += countValues(one)
		}
	}
	return count
}

// sizeOf returns how large a pattern is.
func sizeOf(r jsonschema.Regexp) int {
	if pattern, ok := r.(*template.Pattern); ok {
		return pattern.Size
	}
	return math.MaxInt16
}

// inPlace is what the keywords take that look at the same value again.
func (e *estimate) inPlace(s *jsonschema.Schema, p *place) int {
	total := e.all(p, s.Ref, s.Not, s.If, s.Then, s.Else, s.ContentSchema)
	total += e.all(p, s.AllOf...) + e.all(p, s.AnyOf...) + e.all(p, s.OneOf...)
	for _, one := range s.DependentSchemas {
		total += e.cost(one, p)
	}
	for _, one := range s.Dependencies {
		if schema, ok := one.(*jsonschema.Schema); ok {
			total += e.cost(schema, p)
		}
	}
	return min(total, math.MaxInt32)
}

func (e *estimate) all(p *place, schemas ...*jsonschema.Schema) int {
	total := 0
	for _, s := range schemas {
		total = min(total+e.cost(s, p), math.MaxInt32)
	}
	return total
}

func (e *estimate) ofMembers(s *jsonschema.Schema, p *place) int {
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	total := 0
	for name, inner := range p.members {
		total += e.all(inner, s.Properties[name], additional, s.UnevaluatedProperties)
		total += e.all(&place{text: len(name)}, s.PropertyNames)
		for pattern, one := range s.PatternProperties {
			total += sizeOf(pattern) * (1 + len(name)) / textPerCheck
			if pattern.MatchString(name) {
				total += e.cost(one, inner)
			}
		}
		total = min(total, math.MaxInt32)
	}
	return total
}

func (e *estimate) ofElements(s *jsonschema.Schema, p *place) int {
	total := 0
	for i, inner := range p.elements {
		if i < len(s.PrefixItems) {
			total += e.cost(s.PrefixItems[i], inner)
		}
		total = min(total+e.all(inner, s.Items2020, s.Contains, s.UnevaluatedItems), math.MaxInt32)
	}
	return total
}
