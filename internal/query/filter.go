package query

import "strings"

// Source is where a property is looked up.
type Source string

// The sources of properties.
const (
	FromProperties Source = "properties"
	FromContext    Source = "context"
	FromTraits     Source = "traits"
)

// Property names one value of an event or of its person. Name is first taken
// as one member's name, dots and all; if there is none, as a path through
// nested objects.
type Property struct {
	Source Source
	Name   string
}

// Op compares a property with a filter's values.
type Op string

// The operators.
const (
	Eq       Op = "eq"
	Ne       Op = "ne"
	In       Op = "in"
	Contains Op = "contains"
	Gt       Op = "gt"
	Gte      Op = "gte"
	Lt       Op = "lt"
	Lte      Op = "lte"
	Set      Op = "set"
	NotSet   Op = "not_set"
)

// Filter keeps the events whose property compares as stated. Ne keeps those
// without the property too; no other comparison does, except NotSet.
type Filter struct {
	Property Property
	Op       Op
	// Values are the operands: none for Set and NotSet, any number for In,
	// else one.
	Values []Value
}

// Value is an operand. Text is compared with the property's text, a number
// numerically with whatever reads as a number.
type Value struct {
	// Text is the operand's text: "true" and "false" for booleans.
	Text   string
	IsBool bool
	// Number is set if IsNumber.
	Number   float64
	IsNumber bool
}

// maxPropertyName is the longest property name, in bytes.
const maxPropertyName = 1000

// parseProperty reads "properties.x", "context.x" or "traits.x".
func parseProperty(s string) (Property, bool) {
	source, name, found := strings.Cut(s, ".")
	p := Property{Source: Source(source), Name: name}
	switch p.Source {
	case FromProperties, FromContext, FromTraits:
	default:
		return Property{}, false
	}
	ok := found && name != "" && len(name) <= maxPropertyName && !strings.ContainsRune(name, 0)
	return p, ok
}
