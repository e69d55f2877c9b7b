package template

import (
	"errors"
	"strings"
)

// part is a piece of a text.
type part struct {
	text         string
	isExpression bool
}

var errUnclosed = errors.New("${ is not closed; write $${ for the characters themselves")

// split takes a text apart.
func split(source string) ([]part, error) {
	var parts []part
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			parts = append(parts, part{text: plain.String()})
			plain.Reset()
		}
	}
	for source != "" {
		at := strings.Index(source, "${")
		if at < 0 {
			plain.WriteString(source)
			break
		}
		if at > 0 && source[at-1] == '$' {
			plain.WriteString(source[:at-1] + "${")
			source = source[at+2:]
			continue
		}
		plain.WriteString(source[:at])
		rest := source[at+2:]
		end := closing(rest)
		if end < 0 {
			return nil, errUnclosed
		}
		flush()
		parts = append(parts, part{text: rest[:end], isExpression: true})
		source = rest[end+1:]
	}
	flush()
	return parts, nil
}

// closing returns where the brace is that ends an expression, or -1. Braces in
// texts and comments of the expression do not count.
func closing(source string) int {
	open := 0
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '{':
			open++
		case c == '}' && open == 0:
			return i
		case c == '}':
			open--
		case strings.IndexByte("'\"`", c) >= 0, strings.HasPrefix(source[i:], "//"), strings.HasPrefix(source[i:], "/*"):
			length := skip(source[i:])
			if length < 0 {
				return -1
			}
			i += length - 1
		}
	}
	return -1
}

// skip returns how long the text or comment is that source begins with, or -1
// if it does not end.
func skip(source string) int {
	switch {
	case strings.HasPrefix(source, "//"):
		return lengthTo(source, 2, "\n")
	case strings.HasPrefix(source, "/*"):
		return lengthTo(source, 2, "*/")
	case source[0] == '`':
		return lengthTo(source, 1, "`")
	}
	for i := 1; i < len(source); i++ {
		switch source[i] {
		case '\\':
			i++
		case source[0]:
			return i + 1
		}
	}
	return -1
}

func lengthTo(source string, from int, end string) int {
	at := strings.Index(source[from:], end)
	if at < 0 {
		return -1
	}
	return from + at + len(end)
}
