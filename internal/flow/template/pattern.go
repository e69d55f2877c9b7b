package template

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// maxPattern is how long a regular expression may be.
	maxPattern = 1000
	// maxPatternSize is how large it may become: x{1000} is short, and large.
	maxPatternSize = 10_000
)

var errPattern = errors.New("this is not a regular expression (RE2)")

// Pattern is a regular expression that is not too large. What it takes to match
// a text is at most the product of its size and the length of the text.
type Pattern struct {
	*regexp.Regexp
	// Size is about how many instructions it has.
	Size int
}

// CompilePattern compiles a regular expression (RE2) of at most 1000 bytes and
// 10,000 instructions.
func CompilePattern(source string) (*Pattern, error) {
	if len(source) > maxPattern {
		return nil, fmt.Errorf("a regular expression has at most %d bytes", maxPattern)
	}
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, errPattern
	}
	size := sizeOf(parsed)
	if size > maxPatternSize {
		return nil, errors.New("the regular expression is too large: it repeats too much")
	}
	compiled, err := regexp.Compile(source)
	if err != nil {
		return nil, errPattern
	}
	return &Pattern{compiled, size}, nil
}

// sizeOf counts instructions, and stops counting when there are too many.
func sizeOf(r *syntax.Regexp) int {
	size := 1 + len(r.Rune)/2
	for _, one := range r.Sub {
		size = min(size+sizeOf(one), maxPatternSize+1)
	}
	if r.Op == syntax.OpRepeat {
		size *= max(r.Min, r.Max, 1)
	}
	return min(size, maxPatternSize+1)
}
