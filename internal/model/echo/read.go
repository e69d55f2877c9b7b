package echo

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/model"
)

// question is a request as it is read here.
type question struct {
	// answer is the text of the last message of the user.
	answer string
	// said is how many bytes the texts of all messages are.
	said int
	// tools says that there were some.
	tools bool
	own   own
}

// own are the options of this provider.
type own struct {
	Cached    int64 `json:"cached_tokens"`
	Reasoning int64 `json:"reasoning_tokens"`
}

// roles are those that a message may have.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// read reads a request. What it refuses with is a [*model.Error].
func read(r *model.Request) (*question, error) {
	q := &question{tools: has(r.Options["tools"]) || has(r.Options["functions"])}
	if raw := r.Options[Name]; has(raw) {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if decoder.Decode(&q.own) != nil || q.own.Cached < 0 || q.own.Reasoning < 0 {
			return nil, refuse("the option echo holds cached_tokens and reasoning_tokens, which are whole numbers from 0, and nothing else")
		}
	}
	var messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(r.Messages, &messages) != nil {
		return nil, refuse("messages must be a list of objects with a role")
	}
	asked := false
	for _, m := range messages {
		if !slices.Contains(roles, m.Role) {
			return nil, refuse("the role of a message must be one of " + strings.Join(roles, ", "))
		}
		text, ok := textOf(m.Content)
		if !ok {
			return nil, refuse("the content of a message must be a text, a list of parts with a type, or null")
		}
		q.said += len(text)
		if m.Role == "user" {
			q.answer, asked = text, true
		}
	}
	if !asked {
		return nil, refuse("messages must hold one of the role user: it is what echo repeats")
	}
	return q, nil
}

// has reports whether an option is there and not null.
func has(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// textOf is the text of a content: the texts among its parts, joined.
func textOf(content json.RawMessage) (string, bool) {
	if !has(content) {
		return "", true
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text, true
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return "", false
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "" {
			return "", false
		}
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String(), true
}
