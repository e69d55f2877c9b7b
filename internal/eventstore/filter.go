package eventstore

import (
	"fmt"
	"math"
	"strings"

	"github.com/actionpulse/actionpulse/internal/query"
)

// text returns the expression for a property's text: a string's characters,
// anything else as JSON, NULL where it is absent or null. A row whose JSON
// cannot be read has no properties, instead of failing the query.
func (s *selection) text(p query.Property) string {
	if p.Source == query.FromTraits {
		return s.traitText(p.Name)
	}
	column := "e.properties"
	if p.Source == query.FromContext {
		column = "e.context"
	}
	whole := s.arg(pointer(p.Name))
	if !strings.Contains(p.Name, ".") {
		return fmt.Sprintf("TRY(json_extract_string(%s, %s))", column, whole)
	}
	path := s.arg(pointer(strings.Split(p.Name, ".")...))
	return fmt.Sprintf("TRY(json_extract_string(coalesce(json_extract(%s, %s), json_extract(%s, %s)), '$'))",
		column, whole, column, path)
}

// traitText is text for a trait of the row's person.
func (s *selection) traitText(name string) string {
	whole := s.trait(name) + ".value"
	first, rest, nested := strings.Cut(name, ".")
	if !nested {
		return fmt.Sprintf("TRY(json_extract_string(%s, '$'))", whole)
	}
	path := s.arg(pointer(strings.Split(rest, ".")...))
	return fmt.Sprintf("TRY(json_extract_string(coalesce(%s, json_extract(%s.value, %s)), '$'))",
		whole, s.trait(first), path)
}

// trait joins the latest value of a trait and returns the join's alias.
func (s *selection) trait(name string) string {
	if alias, ok := s.traits[name]; ok {
		return alias
	}
	alias := fmt.Sprintf("t%d", len(s.traits))
	s.traits[name] = alias
	s.joins = append(s.joins, fmt.Sprintf(
		` LEFT JOIN (SELECT person, arg_max(value, (ts, seq)) AS value FROM traits
			WHERE project = %s::UINTEGER AND name = %s GROUP BY person) %s ON %s.person = %s`,
		s.arg(int64(s.scope.Project)), s.arg(name), alias, alias, s.person()))
	return alias
}

// pointer writes member names as a JSON pointer.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(name))
	}
	return b.String()
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// filter returns a condition that is never NULL.
func (s *selection) filter(f *query.Filter) string {
	text := s.text(f.Property)
	switch f.Op {
	case query.Set:
		return text + " IS NOT NULL"
	case query.NotSet:
		return text + " IS NULL"
	case query.Ne:
		return "NOT " + s.equal(text, f.Values)
	case query.Contains:
		return fmt.Sprintf("coalesce(contains(%s, %s), false)", text, s.arg(f.Values[0].Text))
	case query.Eq, query.In:
		return s.equal(text, f.Values)
	}
	return s.ordered(text, f.Op, f.Values[0])
}

var comparison = map[query.Op]string{query.Gt: ">", query.Gte: ">=", query.Lt: "<", query.Lte: "<="}

// equal says that the text equals one of the values: numbers by value, the
// rest by text.
func (s *selection) equal(text string, values []query.Value) string {
	var texts, numbers []string
	for _, v := range values {
		if v.IsNumber {
			numbers = append(numbers, s.arg(v.Number))
		} else {
			texts = append(texts, s.arg(v.Text))
		}
	}
	var either []string
	if len(texts) > 0 {
		either = append(either, fmt.Sprintf("%s IN (%s)", text, strings.Join(texts, ", ")))
	}
	if len(numbers) > 0 {
		either = append(either, fmt.Sprintf("TRY_CAST(%s AS DOUBLE) IN (%s)", text, strings.Join(numbers, ", ")))
	}
	return "coalesce(" + strings.Join(either, " OR ") + ", false)"
}

// ordered compares with a string by text, and with a number numerically, which
// is false for what does not read as a finite number. A number's comparison is
// written as a range of finite ones, so that the text is read only once.
func (s *selection) ordered(text string, op query.Op, v query.Value) string {
	if !v.IsNumber {
		return fmt.Sprintf("coalesce(%s %s %s, false)", text, comparison[op], s.arg(v.Text))
	}
	low, high := -math.MaxFloat64, math.MaxFloat64
	switch op {
	case query.Gt:
		low = math.Nextafter(v.Number, math.Inf(1))
	case query.Gte:
		low = v.Number
	case query.Lt:
		high = math.Nextafter(v.Number, math.Inf(-1))
	default:
		high = v.Number
	}
	return fmt.Sprintf("coalesce(TRY_CAST(%s AS DOUBLE) BETWEEN %s AND %s, false)", text, s.arg(low), s.arg(high))
}
