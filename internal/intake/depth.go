package intake

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// foldDepth is how deep a body may nest and still be read as it is. It is far
// above what is accepted and far below what the decoder can read.
const foldDepth = 1000

// depthOf returns how many levels a value nests, without judging it.
func depthOf(b []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(b); i = tokenEnd(b, i) {
		switch b[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// fold returns body with null in the place of what nests deeper than
// foldDepth, so that a decoder with a limit of its own can read the rest; what
// is left still nests too deep to be accepted. It returns an error if what it
// takes out is not valid JSON.
func fold(body []byte) ([]byte, error) {
	pieces := [][]byte{nil} // the body and, within it, what is being taken out
	depth := 0
	for i := 0; i < len(body); {
		start, top := i, len(pieces)-1
		i = tokenEnd(body, i)
		switch body[start] {
		case '{', '[':
			if depth++; depth > 1 && depth%foldDepth == 1 {
				pieces, top = append(pieces, nil), top+1
			}
		case '}', ']':
			depth--
		}
		pieces[top] = append(pieces[top], body[start:i]...)
		if top > 0 && depth == top*foldDepth {
			if !jsontext.Value(pieces[top]).IsValid(lenient...) {
				return nil, fmt.Errorf("level %d: malformed", depth)
			}
			pieces = pieces[:top]
			pieces[top-1] = append(pieces[top-1], "null"...)
		}
	}
	if len(pieces) > 1 {
		return nil, io.ErrUnexpectedEOF
	}
	return pieces[0], nil
}

// tokenEnd returns the index after the string that begins at i, or after the
// byte there if none does.
func tokenEnd(b []byte, i int) int {
	if b[i] != '"' {
		return i + 1
	}
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(b))
}
