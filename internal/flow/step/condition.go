package step

import (
	"fmt"

	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// Holds says whether a condition holds: its value must be true or false, and
// null is false. The error is an [*Error].
func Holds(condition *template.Template, s *template.Scope) (bool, error) {
	value, err := condition.Eval(s)
	if err != nil {
		return false, Failed(err, "the condition cannot be decided: "+err.Error())
	}
	switch v := value.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	default:
		return false, Failed(nil, fmt.Sprintf("the condition must be true or false, not a %s", kind(value)))
	}
}

func kind(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case int64, float64:
		return "number"
	case []any:
		return "list"
	default:
		return "object"
	}
}
