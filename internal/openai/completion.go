package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/model"
)

// count is a number of tokens: absent or null is none.
type count int64

// UnmarshalJSON reads a whole number in whatever form.
func (c *count) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseFloat(string(data), 64)
	if err == nil && n > 0 && n < 1<<53 {
		*c = count(n)
	}
	return nil
}

// usage is how providers count.
type usage struct {
	Prompt        count `json:"prompt_tokens"`
	Completion    count `json:"completion_tokens"`
	PromptDetails struct {
		Cached count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// model is the usage in our terms, in which a part is never more than the
// whole.
func (u *usage) model() model.Usage {
	if u == nil {
		return model.Usage{}
	}
	return model.Usage{
		Input: int64(u.Prompt), Output: int64(u.Completion),
		Cached:    int64(min(u.PromptDetails.Cached, u.Prompt)),
		Reasoning: int64(min(u.CompletionDetails.Reasoning, u.Completion)),
	}
}

// readUsage reads what was counted from an answer of whatever form; nil if that
// is not said. A part in an odd form does not hide the others.
func readUsage(content []byte) *usage {
	var outer struct {
		Usage *usage `json:"usage"`
	}
	_ = json.Unmarshal(content, &outer)
	return outer.Usage
}

// whole is an answer that does not stream.
type whole struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Message      json.RawMessage `json:"message"`
		FinishReason string          `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

// readWhole reads an answer that does not stream. If it was asked to, its text
// is emitted at once.
func readWhole(body io.Reader, emit func(string)) (*model.Completion, error) {
	content, all, err := callhttp.Read(body, maxAnswer)
	if err != nil {
		return nil, &model.Error{Outcome: model.Unknown, Retryable: true, Message: callhttp.Explain(err), Err: err}
	}
	if !all {
		return nil, tooLarge()
	}
	var w whole
	err = json.Unmarshal(content, &w)
	if e := readEnvelope(content); e.there {
		return nil, spoken(e, w.Usage.model())
	}
	if err != nil || len(w.Choices) == 0 || !isObject(w.Choices[0].Message) {
		return nil, &model.Error{
			Outcome: model.Unknown, Message: "the answer is not a chat completion", Usage: w.Usage.model(), RequestID: shorten(w.ID), Err: err,
		}
	}
	first := w.Choices[0]
	out := &model.Completion{
		Text: textOf(first.Message), Message: first.Message, FinishReason: first.FinishReason, Model: w.Model,
		Usage: w.Usage.model(), RequestID: shorten(w.ID),
	}
	if out.Text != "" {
		emit(out.Text)
	}
	return out, nil
}

// tooLarge: the provider has done its work, and would do the same again.
func tooLarge() *model.Error {
	return &model.Error{Outcome: model.Refused, Message: "the answer is larger than 8 MiB"}
}

// spoken is an error that the provider tells of after it has begun with 200.
// What it means is said by its code where that is an HTTP status, and by what
// was counted until then.
func spoken(e envelope, used model.Usage) *model.Error {
	status, err := strconv.Atoi(e.code)
	if err != nil || status < 400 || status > 599 {
		status = http.StatusBadRequest
		if e.code == "server_error" || e.code == "overloaded_error" {
			status = http.StatusInternalServerError
		}
	}
	e.used = used
	out := judge(status, http.Header{}, e, time.Time{})
	out.Message = "the provider has answered with an error: " + shorten(e.message)
	return out
}

func isObject(raw json.RawMessage) bool {
	return strings.HasPrefix(strings.TrimLeft(string(raw), " \t\r\n"), "{")
}

// textOf is the content of a message: a text, or the texts among its parts.
func textOf(message json.RawMessage) string {
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(message, &m) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
