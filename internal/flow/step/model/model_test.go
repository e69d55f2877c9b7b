package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	modelstep "github.com/actionpulse/actionpulse/internal/flow/step/model"
	"github.com/actionpulse/actionpulse/internal/flow/step/steptest"
	"github.com/actionpulse/actionpulse/internal/flow/template"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/model/echo"
	"github.com/actionpulse/actionpulse/internal/openai"
	"github.com/actionpulse/actionpulse/internal/openai/openaitest"
)

const answer = `{"id":"chatcmpl-1","model":"gpt-x-2026","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","n":1.5},"finish_reason":"stop"}],
"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":3}}}`

// resolver has the provider echo, and the one of a project.
type resolver struct{ project model.Provider }

func (r resolver) Resolve(_ context.Context, projectID, name string) (model.Provider, error) {
	switch {
	case name == echo.Name:
		return echo.New(time.After), nil
	case name == "mine" && projectID == "project":
		return r.project, nil
	default:
		return nil, &model.Error{Outcome: model.NotSent, Message: "there is no such provider"}
	}
}

func connect(s *openaitest.Server) resolver {
	adapter := openai.New(openai.Params{HTTP: callhttp.New(callhttp.Params{AllowPrivate: true, Agent: "test"}), Now: time.Now})
	return resolver{adapter.Open(model.Connection{BaseURL: s.URL, APIKey: "sk-secret"})}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t, openaitest.Reply{Body: answer})
	steptest.Run(t, steptest.Case{
		Type: modelstep.New(connect(s)), Effect: step.Calls, Input: `{"text": "hi", "model": "gpt-x", "none": [], "n": 3, "echo": "echo"}`,
		Members: `{"provider": "mine", "model": "${input.model}", "messages": [{"role": "user", "content": "${input.text}"}], "stream": false,
			"options": {"temperature": 0.2, "stop": ["${input.text}"]}, "retries": 2, "on_interrupt": "retry"}`,
		Want: `{"text": "Hello", "message": {"role": "assistant", "content": "Hello", "n": 1.5}, "finish_reason": "stop",
			"usage": {"input_tokens": 100, "output_tokens": 7, "cached_tokens": 64, "reasoning_tokens": 3}}`,
		Refused: []string{
			`{"model": "m", "messages": [{}]}`, `{"provider": "mine", "messages": [{}]}`, `{"provider": "mine", "model": "m"}`,
			`{"provider": "mine", "model": "m", "messages": []}`, `{"provider": "mine", "model": "m", "messages": [{}], "stream": "yes"}`,
			`{"provider": "mine", "model": "m", "messages": [{}], "options": {"model": "x"}}`,
			`{"provider": "mine", "model": "m", "messages": [{}], "options": {"stream": true}}`, `{"provider": "mine", "model": "m", "messages": [{}], "options": "${input}"}`,
		},
		Broken: map[string]string{
			`{"provider": "Mine", "model": "m", "messages": [{}]}`: "steps[0].provider", `{"provider": "mine", "model": "m", "messages": "hi"}`: "steps[0].messages",
			`{"provider": "mine", "model": "${", "messages": [{}]}`: "steps[0].model",
		},
		Failing: []string{
			`{"provider": "theirs", "model": "m", "messages": [{}]}`, `{"provider": "mine", "model": "${input.n}", "messages": [{}]}`,
			`{"provider": "${input.n}", "model": "m", "messages": [{}]}`, `{"provider": "mine", "model": "m", "messages": "${input.none}"}`,
			`{"provider": "mine", "model": "m", "messages": "${input.text}"}`, `{"provider": "${input.echo}", "model": "echo-fail", "messages": [{"role": "user"}]}`,
		},
		Keys: func() []string {
			keys := []string{}
			for _, r := range s.Requests() {
				keys = append(keys, r.Header.Values("Idempotency-Key")...)
			}
			return keys
		},
	})
}

// run runs a step and returns what was told of it meanwhile, too.
func run(t *testing.T, r resolver, members string) (step.Program, step.Result, *step.Error, string) {
	t.Helper()
	own, err := template.Decode([]byte(members))
	if err != nil {
		t.Fatal(err)
	}
	program, err := modelstep.New(r).Compile(&step.Compiler{Path: "steps[0]", Members: own.(map[string]any), Step: &step.Step{}})
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	result, err := program.Run(t.Context(), &step.Run{
		ProjectID: "project", Scope: template.NewScope(map[string]any{}, nil), Key: "the key", Attempt: 1, Now: time.Now,
		Emit: func(text string) { told.WriteString(text + "|") },
	})
	if err == nil {
		return program, result, nil, told.String()
	}
	e, ok := errors.AsType[*step.Error](err)
	if !ok {
		t.Fatalf("%v is no step.Error", err)
	}
	return program, result, e, told.String()
}

// TestEchoIsLocal: what is written out as echo calls nobody, and is told of
// all the same: its tokens have a price.
func TestEchoIsLocal(t *testing.T) {
	t.Parallel()
	program, result, e, told := run(t, resolver{}, `{"provider": "echo", "model": "echo-1", "messages": [{"role": "user", "content": "a b"}], "stream": true}`)
	if e != nil || program.Effect() != step.Pure || result.Value["text"] != "a b" || told != "a |b|" {
		t.Errorf("%v, %+v, %q", e, result.Value, told)
	}
	if result.Call == nil || result.Call.Provider != "echo" || result.Call.Model != "echo-1" || result.Call.Usage != (model.Usage{Input: 1, Output: 1}) {
		t.Errorf("%+v", result.Call)
	}
	if program, _, _, _ := run(t, resolver{}, `{"provider": "${'ec' + 'ho'}", "model": "echo-1", "messages": [{"role": "user", "content": "a"}]}`); program.Effect() != step.Calls {
		t.Error("whom an expression names is not known before it runs")
	}
}

// TestCall: what is kept of a call.
func TestCall(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t, openaitest.Reply{Body: answer, Header: map[string]string{"X-Request-Id": "req_1"}})
	_, result, e, told := run(t, connect(s), `{"provider": "mine", "model": "gpt-x", "messages": [{"role": "user", "content": "hi"}], "options": {"temperature": 0.2}}`)
	if e != nil || told != "" {
		t.Fatal(e, told)
	}
	want := &step.Call{
		Kind: "model", Provider: "mine", Model: "gpt-x", Usage: model.Usage{Input: 100, Output: 7, Cached: 64, Reasoning: 3}, Status: 200, ProviderRequestID: "req_1",
		Request:  json.RawMessage(`{"messages":[{"content":"hi","role":"user"}],"model":"gpt-x","stream":false,"temperature":0.2}`),
		Response: json.RawMessage(`{"finish_reason":"stop","message":{"content":"Hello","n":1.5,"role":"assistant"},"model":"gpt-x-2026"}`),
	}
	if diff := cmp.Diff(want, result.Call); diff != "" {
		t.Error(diff)
	}
}

// TestFailures: what the adapter knows is passed on.
func TestFailures(t *testing.T) {
	t.Parallel()
	const members = `{"provider": "mine", "model": "gpt-x", "messages": [{"role": "user", "content": "hi"}], "stream": true}`
	for _, c := range []struct {
		name  string
		reply openaitest.Reply
		want  step.Error
	}{
		{"busy", openaitest.Reply{Status: 429, Header: map[string]string{"Retry-After": "3"}, Body: `{"error":{"message":"slow"}}`}, step.Error{
			Message: "the provider has answered 429: slow", Retryable: true, After: 3 * time.Second, Call: &step.Call{Status: 429},
		}},
		{"refused", openaitest.Reply{Status: 400, Body: `{"error":{"message":"no"}}`}, step.Error{
			Message: "the provider has answered 400: no", Call: &step.Call{Status: 400},
		}},
		{"cut", openaitest.Reply{
			Kind: "text/event-stream", Cut: true, Header: map[string]string{"X-Request-Id": "req_1"},
			Body: `data: {"choices":[{"index":0,"delta":{"content":"He"}}],"usage":{"prompt_tokens":5}}` + "\n\n",
		}, step.Error{
			Message: "the connection ended without a whole answer", Outcome: step.Unknown, Retryable: true,
			Call: &step.Call{Status: 200, Usage: model.Usage{Input: 5}, ProviderRequestID: "req_1"},
		}},
	} {
		s := openaitest.New(t, c.reply)
		_, _, e, _ := run(t, connect(s), members)
		if e == nil {
			t.Errorf("%s: a success", c.name)
			continue
		}
		c.want.Code, c.want.Call.Kind, c.want.Call.Provider, c.want.Call.Model, c.want.Call.Request = "model_error", "model", "mine", "gpt-x", e.Call.Request
		e.Err = nil
		if diff := cmp.Diff(&c.want, e); diff != "" || e.Call.Request == nil {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if _, _, e, _ := run(t, resolver{}, strings.Replace(members, "mine", "none", 1)); e == nil || e.Outcome != step.NotSent || e.Retryable || e.Call == nil {
		t.Errorf("%+v", e)
	}
	broken := resolver{failing{}}
	if _, _, e, _ := run(t, broken, members); e == nil || e.Outcome != step.Unknown || !errors.Is(e, io.ErrClosedPipe) {
		t.Errorf("what an adapter does not explain may have happened: %+v", e)
	}
}

// failing is an adapter with a fault.
type failing struct{}

func (failing) Complete(context.Context, *model.Request, func(string)) (*model.Completion, error) {
	return nil, io.ErrClosedPipe
}
