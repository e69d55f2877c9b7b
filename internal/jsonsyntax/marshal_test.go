package jsonsyntax_test

import (
	"encoding/json"
	"testing"

	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

// Characters stay as they are, in what is raw already, too.
func TestMarshal(t *testing.T) {
	got, err := jsonsyntax.Marshal(map[string]any{"a": "<&>", "raw": json.RawMessage(`"<b>"`)})
	if want := `{"a":"<&>","raw":"<b>"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if got, err := jsonsyntax.Marshal(func() {}); err == nil {
		t.Errorf("a function is %s", got)
	}
}
