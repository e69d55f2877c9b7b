package echo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/model/echo"
)

const (
	hi     = `[{"role":"system","content":"be kind"},{"role":"user","content":"Hello"},{"role":"assistant","content":null},{"role":"user","content":"one two three"}]`
	parts  = `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"},{"type":"text","text":"b"}]}]`
	refuse = "the option echo holds cached_tokens and reasoning_tokens, which are whole numbers from 0, and nothing else"
)

func complete(ctx context.Context, r *model.Request) (*model.Completion, *model.Error, []string) {
	var emitted []string
	c, err := echo.New(time.After).Complete(ctx, r, func(text string) { emitted = append(emitted, text) })
	e, _ := errors.AsType[*model.Error](err)
	return c, e, emitted
}

func options(text string) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

func TestEcho(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, messages, options string
		stream                  bool
		text                    string
		usage                   model.Usage
		emitted                 []string
	}{
		{"plain", hi, `{}`, false, "one two three", model.Usage{Input: 7, Output: 4}, nil},
		{"stream", hi, `{}`, true, "one two three", model.Usage{Input: 7, Output: 4}, []string{"one ", "two ", "three"}},
		{"options of others", hi, `{"temperature":0.2,"echo":null}`, false, "one two three", model.Usage{Input: 7, Output: 4}, nil},
		{"cached", hi, `{"echo":{"cached_tokens":5,"reasoning_tokens":1}}`, false, "one two three", model.Usage{Input: 7, Output: 4, Cached: 5, Reasoning: 1}, nil},
		{"more cached than there is", hi, `{"echo":{"cached_tokens":500,"reasoning_tokens":500}}`, false, "one two three", model.Usage{Input: 7, Output: 4, Cached: 7, Reasoning: 4}, nil},
		{"parts", parts, `{}`, false, "ab", model.Usage{Input: 1, Output: 1}, nil},
		{"nothing", `[{"role":"user","content":""}]`, `{}`, true, "", model.Usage{}, nil},
	} {
		got, failure, emitted := complete(t.Context(), &model.Request{
			Model: echo.Plain, Messages: json.RawMessage(c.messages), Options: options(c.options), Stream: c.stream,
		})
		if failure != nil {
			t.Errorf("%s: %v", c.name, failure)
			continue
		}
		if got.Text != c.text || got.Usage != c.usage || got.FinishReason != "stop" || got.Model != "echo-1" || !cmp.Equal(emitted, c.emitted) {
			t.Errorf("%s: %+v, %q", c.name, got, emitted)
		}
		var message map[string]string
		if err := json.Unmarshal(got.Message, &message); err != nil || message["role"] != "assistant" || message["content"] != c.text ||
			!strings.Contains(message["note"], "no language model") || strings.Contains(message["note"], "tool") {
			t.Errorf("%s: %s, %v", c.name, got.Message, err)
		}
	}
}

func TestToolsAreIgnored(t *testing.T) {
	t.Parallel()
	got, failure, _ := complete(t.Context(), &model.Request{Model: echo.Plain, Messages: json.RawMessage(hi), Options: options(`{"tools":[{}]}`)})
	if failure != nil || !strings.Contains(string(got.Message), "those of the request were ignored") || strings.Contains(string(got.Message), "tool_calls") {
		t.Errorf("%+v, %v", got, failure)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, model, messages, options string
		want                           model.Error
	}{
		{"fail", echo.Fail, hi, `{}`, model.Error{Status: 400, Message: "echo-fail refuses every request"}},
		{"busy", echo.Busy, hi, `{}`, model.Error{Status: 429, Retryable: true, After: time.Second, Message: "echo-busy is always busy"}},
		{"lost", echo.Lost, hi, `{}`, model.Error{Outcome: model.Unknown, Retryable: true, Message: "echo-lost never answers"}},
		{"model", "gpt-4", hi, `{}`, model.Error{Status: 400, Message: "the provider echo has no model of this name: it has echo-1, echo-slow, echo-fail, echo-busy and echo-lost"}},
		{"option", echo.Plain, hi, `{"echo":{"cached":1}}`, model.Error{Status: 400, Message: refuse}},
		{"negative", echo.Plain, hi, `{"echo":{"cached_tokens":-1}}`, model.Error{Status: 400, Message: refuse}},
		{"messages", echo.Plain, `{}`, `{}`, model.Error{Status: 400, Message: "messages must be a list of objects with a role"}},
		{"nobody asks", echo.Plain, `[{"role":"system","content":"x"}]`, `{}`, model.Error{Status: 400, Message: "messages must hold one of the role user: it is what echo repeats"}},
		{"role", echo.Plain, `[{"role":"User","content":"x"}]`, `{}`, model.Error{Status: 400, Message: "the role of a message must be one of system, developer, user, assistant, tool, function"}},
		{"content", echo.Plain, `[{"role":"user","content":1}]`, `{}`, model.Error{Status: 400, Message: "the content of a message must be a text, a list of parts with a type, or null"}},
		{"part", echo.Plain, `[{"role":"user","content":[{"text":"x"}]}]`, `{}`, model.Error{Status: 400, Message: "the content of a message must be a text, a list of parts with a type, or null"}},
	} {
		got, failure, emitted := complete(t.Context(), &model.Request{Model: c.model, Messages: json.RawMessage(c.messages), Options: options(c.options)})
		if diff := cmp.Diff(&c.want, failure); diff != "" || got != nil || emitted != nil {
			t.Errorf("%s: %v %s", c.name, emitted, diff)
		}
	}
}

// TestSlow: a second passes before each word, and nothing waits when the
// context ends.
func TestSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &model.Request{Model: echo.Slow, Messages: json.RawMessage(hi), Stream: true}
		if got, failure, _ := complete(t.Context(), r); failure != nil || got.Text != "one two three" || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", failure, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began = time.Now()
		_, failure, emitted := complete(ctx, r)
		if failure == nil || failure.Outcome != model.Unknown || !cmp.Equal(emitted, []string{"one "}) || time.Since(began) != 1500*time.Millisecond {
			t.Errorf("%v, %q after %v", failure, emitted, time.Since(began))
		}
	})
}
