package jsonsyntax

import (
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	for _, body := range []string{`{}`, ` 1 `, `{"a":1,"b":{"a":1}}`, `"\ud83d\ude00"`, nested(maxDepth)} {
		if err := Check([]byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{
		``, ` `, `{`, `{}{}`, `{} x`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"b":{"a":1,"a":1}}`, `01`, `{'a':1}`, `[1,]`,
		"\"\xff\"", `"\ud800"`, "\ufeff{}", nested(maxDepth + 1),
	} {
		if err := Check([]byte(body)); err == nil || fault.CodeOf(err) != api.CodeInvalidJSON {
			t.Errorf("%q: got %v, want invalid_json", body, err)
		}
	}
}
