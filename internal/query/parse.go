package query

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/fault"
)

// decode reads a checked body into a request, whose members are all it may
// have.
func decode(body []byte, request any) error {
	err := json.Unmarshal(body, request, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		field := fieldOf(e.JSONPointer)
		if errors.Is(err, json.ErrUnknownName) {
			return fault.Field(field, "this member is not known here")
		}
		return fault.Field(field, "this member has the wrong type")
	}
	return fmt.Errorf("decode query: %w", err)
}

// maxShown is the longest submitted text that a refusal repeats.
const maxShown = 64

// fieldOf writes a JSON pointer as "where[0].op".
func fieldOf(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		if n, err := strconv.ParseUint(token, 10, 32); err == nil && b.Len() > 0 {
			fmt.Fprintf(&b, "[%d]", n)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(shorten(token))
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}

// shorten cuts text to what may be shown.
func shorten(s string) string {
	runes := []rune(s)
	if len(runes) <= maxShown {
		return s
	}
	return string(runes[:maxShown-1]) + "…"
}
