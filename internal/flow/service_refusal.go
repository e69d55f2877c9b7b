package flow

import (
	"regexp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

const (
	// maxIssues is how many issues a refusal holds.
	maxIssues = 50
	// maxShown is the longest submitted text that a refusal repeats.
	maxShown = 64
	// maxMessage and maxPath bound the whole of an issue.
	maxMessage = 300
	maxPath    = 200
)

// refuse makes a refusal of what is wrong with a definition.
func refuse(issues *step.Issues) error {
	list := issues.List
	if len(list) == 0 {
		return fault.New(api.CodeInvalidRequest, "the definition is not valid")
	}
	shown := make([]step.Issue, min(len(list), maxIssues))
	for i := range shown {
		shown[i] = step.Issue{Path: cut(list[i].Path, maxPath), Message: cut(list[i].Message, maxMessage)}
	}
	field, at := shown[0].Path, shown[0].Path+": "
	if field == "" {
		field, at = "definition", ""
	}
	f := fault.New(api.CodeInvalidRequest, "the definition is not valid: %s%s", at, shown[0].Message).
		With("field", field).With("issues", shown)
	if more := len(list) - len(shown); more > 0 {
		f = f.With("more_issues", more)
	}
	return f
}

// long are texts that may have been submitted and are too long to repeat.
var long = regexp.MustCompile(`"[^"]{65,}"|'[^']{65,}'|[^\s"'.\[\]]{65,}`)

// cut shortens long words and quotations, and then the whole.
func cut(text string, most int) string {
	text = long.ReplaceAllStringFunc(text, func(part string) string { return string([]rune(part)[:maxShown-1]) + "…" })
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
