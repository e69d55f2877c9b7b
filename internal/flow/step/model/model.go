// Package model is the type of steps that have a model answer. It knows how a
// step says what to ask; providers and what they need are behind [Resolver].
//
// Invariants:
//   - a call carries the derived Idempotency-Key;
//   - what is known of a failed call, and what it has used, is passed on as the
//     provider's adapter says it.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/model/echo"
)

// Resolver finds the providers of projects. Errors are [*model.Error].
type Resolver interface {
	Resolve(ctx context.Context, projectID, name string) (model.Provider, error)
}

// Type implements [step.Type].
type Type struct{ resolver Resolver }

var _ step.Type = Type{}

// New returns the type.
func New(r Resolver) Type { return Type{resolver: r} }

// Name implements [step.Type].
func (Type) Name() string { return "model" }

// Schema implements [step.Type].
func (Type) Schema() json.RawMessage {
	return json.RawMessage(`{
		"type": "object",
		"description": "Has a model answer: steps.<id> has text, message, usage and finish_reason.",
		"properties": {
			"provider": {"type": "string", "minLength": 1, "description": "The name of a provider of the project, or echo, which is part of the server."},
			"model": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "The provider's name of the model."},
			"messages": {"type": ["array", "string"], "minItems": 1, "description": "The messages of the chat, or an expression that gives them."},
			"stream": {"type": "boolean", "description": "Whether the text is told of as it comes."},
			"options": {
				"type": "object",
				"description": "Further members of the request, like temperature, tools or response_format.",
				"propertyNames": {"not": {"enum": ["model", "messages", "stream", "stream_options"]}}
			}
		},
		"required": ["provider", "model", "messages"],
		"additionalProperties": false
	}`)
}

// providerName is what providers may be called.
var providerName = regexp.MustCompile(model.NamePattern)

// Compile implements [step.Type].
func (t Type) Compile(c *step.Compiler) (step.Program, error) {
	p := &program{resolver: t.resolver}
	for _, member := range []struct {
		name string
		into **template.Template
	}{{"provider", &p.provider}, {"model", &p.model}, {"messages", &p.messages}, {"options", &p.options}} {
		var err error
		if *member.into, err = c.Template(member.name); err != nil {
			return nil, err
		}
	}
	p.stream, _ = c.Members["stream"].(bool)
	if name, ok := p.provider.Literal(); ok {
		if text, _ := name.(string); !providerName.MatchString(text) {
			return nil, step.Refuse(c.Path+".provider", "provider is a name of 1 to 64 letters a to z, digits, _ and -")
		}
		p.local = name == echo.Name
	}
	if value, ok := p.messages.Literal(); ok {
		if _, isList := value.([]any); !isList {
			return nil, step.Refuse(c.Path+".messages", "messages is a list, or an expression that gives one")
		}
	}
	return p, nil
}

type program struct {
	resolver                           Resolver
	provider, model, messages, options *template.Template
	stream                             bool
	// local says that nothing outside is called.
	local bool
}

// Effect implements [step.Program]. A step whose provider is written out as
// echo calls nobody.
func (p *program) Effect() step.Effect {
	if p.local {
		return step.Pure
	}
	return step.Calls
}

var _ step.Addressed = (*program)(nil)

// Callee implements [step.Addressed].
func (p *program) Callee(s *template.Scope) (provider, name string) {
	provider, err := text("provider", p.provider, s)
	if err != nil {
		return "", ""
	}
	name, err = text("model", p.model, s)
	if err != nil {
		return "", ""
	}
	return provider, name
}

// Run implements [step.Program].
func (p *program) Run(ctx context.Context, r *step.Run) (step.Result, error) {
	request, call, err := p.request(r)
	if err != nil {
		return step.Result{}, err
	}
	provider, err := p.resolver.Resolve(ctx, r.ProjectID, call.Provider)
	if err != nil {
		return step.Result{}, failed(err, call)
	}
	completion, err := provider.Complete(ctx, request, r.Emit)
	if err != nil {
		return step.Result{}, failed(err, call)
	}
	return result(completion, call)
}

// request evaluates what the step says.
func (p *program) request(r *step.Run) (*model.Request, *step.Call, error) {
	q := &model.Request{Stream: p.stream, Key: r.Key, Options: map[string]json.RawMessage{}}
	call := &step.Call{Kind: "model"}
	var err error
	if call.Provider, err = text("provider", p.provider, r.Scope); err != nil {
		return nil, nil, err
	}
	if call.Model, err = text("model", p.model, r.Scope); err != nil {
		return nil, nil, err
	}
	q.Model = call.Model
	messages, err := eval("messages", p.messages, r.Scope)
	if err != nil {
		return nil, nil, err
	}
	if list, ok := messages.([]any); !ok || len(list) == 0 {
		return nil, nil, step.Failed(nil, "messages must be a list that is not empty")
	}
	traced := map[string]any{}
	if p.options != nil {
		options, err := eval("options", p.options, r.Scope)
		if err != nil {
			return nil, nil, err
		}
		traced = maps.Clone(options.(map[string]any)) // the schema allows no other, nor an expression
	}
	for name, value := range traced {
		if q.Options[name], err = encode("options", value); err != nil {
			return nil, nil, err
		}
	}
	if q.Messages, err = encode("messages", messages); err != nil {
		return nil, nil, err
	}
	traced["model"], traced["messages"], traced["stream"] = q.Model, messages, q.Stream
	call.Request, err = encode("request", traced)
	return q, call, err
}

// result makes the value of the step.
func result(c *model.Completion, call *step.Call) (step.Result, error) {
	call.Usage, call.Status, call.ProviderRequestID = c.Usage, c.Status, c.RequestID
	message, err := template.Decode(c.Message)
	if err != nil {
		return step.Result{}, &step.Error{Code: api.CodeModelError, Message: "the model's message cannot be kept", Call: call, Err: err}
	}
	call.Response, err = encode("answer", map[string]any{"model": c.Model, "message": message, "finish_reason": c.FinishReason})
	if err != nil {
		return step.Result{}, err
	}
	return step.Result{Call: call, Value: map[string]any{
		"text": c.Text, "message": message, "finish_reason": c.FinishReason, "usage": map[string]any{
			"input_tokens": c.Usage.Input, "output_tokens": c.Usage.Output,
			"cached_tokens": c.Usage.Cached, "reasoning_tokens": c.Usage.Reasoning,
		},
	}}, nil
}

// outcomes are those of models in the words of steps.
var outcomes = map[model.Outcome]step.Outcome{model.Refused: step.Refused, model.NotSent: step.NotSent, model.Unknown: step.Unknown}

// failed passes on what is known of a call that failed.
func failed(err error, call *step.Call) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return &step.Error{Code: api.CodeModelError, Message: "the server has failed to call the model", Outcome: step.Unknown, Call: call, Err: err}
	}
	call.Usage, call.Status, call.ProviderRequestID = e.Usage, e.Status, e.RequestID
	return &step.Error{
		Code: api.CodeModelError, Message: e.Message, Outcome: outcomes[e.Outcome], Retryable: e.Retryable, After: e.After, Call: call, Err: e.Err,
	}
}

func eval(name string, t *template.Template, scope *template.Scope) (any, error) {
	value, err := t.Eval(scope)
	if err != nil {
		return nil, step.Failed(err, fmt.Sprintf("%s: %v", name, err))
	}
	return value, nil
}

// text evaluates what must be a text.
func text(name string, t *template.Template, scope *template.Scope) (string, error) {
	value, err := eval(name, t, scope)
	if err != nil {
		return "", err
	}
	if s, ok := value.(string); ok && s != "" {
		return s, nil
	}
	return "", step.Failed(nil, name+" must be a text that is not empty")
}

func encode(name string, value any) (json.RawMessage, error) {
	encoded, err := template.Encode(value)
	if err != nil {
		return nil, step.Failed(err, fmt.Sprintf("%s: %v", name, err))
	}
	return encoded, nil
}
