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

// A member may nest deeper, and no other: not one before or after it, nor one
// of its name further inside.
func TestCheckDeep(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	for body, ok := range map[string]bool{
		`{"a":` + nested(63) + `,"d\u0065ep":` + nested(99) + `,"z":` + nested(63) + `}`: true,
		`{"deep":` + nested(100) + `}`:            false,
		`{"deep":[],"z":` + nested(64) + `}`:      false,
		`{"z":` + nested(64) + `,"deep":[]}`:      false,
		`{"z":{"deep":` + nested(63) + `}}`:       false,
		`{"deep":{"z":` + nested(98) + `},"y":1}`: true,
		`{"z":"deep","y":` + nested(64) + `}`:     false,
		`["deep",` + nested(64) + `]`:             false,
		`{"deep":{"a":1,"a":2}}`:                  false,
	} {
		if err := CheckDeep([]byte(body), Deep{Name: "deep", Depth: 100}); (err == nil) != ok {
			t.Errorf("%.40s: %v, want ok %v", body, err, ok)
		}
	}
}
