package flow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// TestRefusalsAreBounded: as many issues as help, and no long submitted text,
// wherever it stands.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", 65)
	issues := &step.Issues{}
	for i := range 60 {
		issues.List = append(issues.List, step.Issue{Path: fmt.Sprintf("steps[%d].%s.x", i, secret), Message: `is "` + strings.Repeat("s s", 30) + `" and ` + secret + strings.Repeat(" long", 100)})
	}
	f, ok := errors.AsType[*fault.Error](refuse(issues))
	if !ok || f.Code != api.CodeInvalidRequest {
		t.Fatalf("%v", f)
	}
	shown, ok := f.Details["issues"].([]step.Issue)
	if !ok || len(shown) != maxIssues || f.Details["more_issues"] != 10 || f.Details["field"] != shown[0].Path {
		t.Errorf("%d issues, %v more, field %v", len(shown), f.Details["more_issues"], f.Details["field"])
	}
	for _, one := range append(shown, step.Issue{Message: f.Message}) {
		text := one.Path + one.Message
		if strings.Contains(text, secret) || strings.Contains(text, strings.Repeat("s s", 22)) || len([]rune(one.Message)) > 600 {
			t.Fatalf("%+v", one)
		}
	}
	if !strings.HasPrefix(shown[3].Path, "steps[3].s") || !strings.HasSuffix(shown[3].Path, "….x") {
		t.Errorf("%s", shown[3].Path)
	}
	short := &step.Issues{List: []step.Issue{{Path: "", Message: `must be an object with "steps"`}}}
	f, _ = errors.AsType[*fault.Error](refuse(short))
	if f.Message != `the definition is not valid: must be an object with "steps"` || f.Details["field"] != "definition" || f.Details["more_issues"] != nil {
		t.Errorf("%+v", f)
	}
}
