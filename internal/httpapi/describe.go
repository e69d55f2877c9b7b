package httpapi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// describe completes "the member must be …" from what the schema demands.
func describe(s *huma.Schema) string {
	if len(s.Enum) > 0 {
		return oneOf(s.Enum)
	}
	switch s.Type {
	case huma.TypeString:
		return describeString(s)
	case huma.TypeInteger:
		return "a whole number" + interval(" from %s", s.Minimum, " to %s", s.Maximum)
	case huma.TypeNumber:
		return "a number" + interval(" from %s", s.Minimum, " to %s", s.Maximum)
	case huma.TypeBoolean:
		return "true or false"
	case huma.TypeArray:
		return "a list" + counted(s.MinItems, s.MaxItems, "elements")
	case huma.TypeObject:
		return "an object" + counted(s.MinProperties, s.MaxProperties, "members")
	default:
		return "another value"
	}
}

var formats = map[string]string{
	"date-time": "a time as in RFC 3339, like 2024-01-01T00:00:00Z",
	"uuid":      "a UUID",
	"email":     "an email address",
	"uri":       "a URL",
}

func describeString(s *huma.Schema) string {
	text, ok := formats[s.Format]
	if !ok {
		text = "a string"
	}
	text += counted(s.MinLength, s.MaxLength, "characters")
	if s.PatternDescription != "" {
		return text + ", " + s.PatternDescription
	}
	if s.Pattern != "" {
		return text + " that matches " + s.Pattern
	}
	return text
}

func oneOf(values []any) string {
	var b strings.Builder
	for i, v := range values {
		switch {
		case i > 0 && i == len(values)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, v)
	}
	return b.String()
}

// counted says how many there may be of something.
func counted(least, most *int, of string) string {
	switch {
	case least != nil && most != nil:
		return fmt.Sprintf(" of %d to %d %s", *least, *most, of)
	case most != nil:
		return fmt.Sprintf(" of at most %d %s", *most, of)
	case least != nil:
		return fmt.Sprintf(" of at least %d %s", *least, of)
	}
	return ""
}

func interval(from string, least *float64, to string, most *float64) string {
	text := ""
	if least != nil {
		text += fmt.Sprintf(from, plain(*least))
	}
	if most != nil {
		text += fmt.Sprintf(to, plain(*most))
	}
	return text
}

// plain writes a number without an exponent.
func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
