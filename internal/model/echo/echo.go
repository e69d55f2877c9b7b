// Package echo is a provider of models that is part of the server: it needs no
// network and no key, calls nobody, and answers the same to the same request.
// It is no language model. Its answers say so, in the member "note" of the
// message.
//
// The models:
//
//	echo-1     answers with the text of the last message of the role user
//	echo-slow  the same, but a second passes before each word
//	echo-fail  is refused for good, as a bad request would be
//	echo-busy  is refused with the wish to wait a second, as by a rate limit
//	echo-lost  is answered by nobody, as when a connection ends
//
// A token is four bytes or the rest of them: the input is the texts of all
// messages together, the output the answer. An option named "echo" is its own:
//
//	{"cached_tokens": 100, "reasoning_tokens": 5}
//
// says what the usage counts as cached and as reasoning, at most the input and
// the output. Other options are those of real models and change nothing; tools
// are never called. What is unknown of its own is refused.
package echo

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/model"
)

// Name is the name of the provider, in every project.
const Name = model.Local

// The models.
const (
	Plain = "echo-1"
	Slow  = "echo-slow"
	Fail  = "echo-fail"
	Busy  = "echo-busy"
	Lost  = "echo-lost"
)

const (
	// pace is what a word of the slow model takes, and the wait that the busy
	// one asks for.
	pace = time.Second
	// bytesPerToken is how many bytes count as a token.
	bytesPerToken = 4
)

// note is in every message.
const note = "This is the provider echo, which is no language model: it repeats the last message of the user."

// Provider implements model.Provider.
type Provider struct {
	// After is time.After, for the slow model.
	After func(d time.Duration) <-chan time.Time
}

var _ model.Provider = (*Provider)(nil)

// New returns the provider. after is time.After.
func New(after func(d time.Duration) <-chan time.Time) *Provider { return &Provider{After: after} }

// Complete implements model.Provider.
func (p *Provider) Complete(ctx context.Context, r *model.Request, emit func(text string)) (*model.Completion, error) {
	q, err := read(r)
	if err != nil {
		return nil, err
	}
	switch r.Model {
	case Plain, Slow:
	case Fail:
		return nil, &model.Error{Outcome: model.Refused, Status: 400, Message: "echo-fail refuses every request"}
	case Busy:
		return nil, &model.Error{Outcome: model.Refused, Status: 429, Retryable: true, After: pace, Message: "echo-busy is always busy"}
	case Lost:
		return nil, &model.Error{Outcome: model.Unknown, Retryable: true, Message: "echo-lost never answers"}
	default:
		return nil, refuse("the provider echo has no model of this name: it has echo-1, echo-slow, echo-fail, echo-busy and echo-lost")
	}
	if err := p.speak(ctx, r, q.answer, emit); err != nil {
		return nil, err
	}
	return q.completion(r)
}

// speak emits the words of the answer, if it streams.
func (p *Provider) speak(ctx context.Context, r *model.Request, answer string, emit func(string)) error {
	for word := range strings.SplitAfterSeq(answer, " ") {
		if r.Model == Slow {
			select {
			case <-p.After(pace):
			case <-ctx.Done():
				return &model.Error{Outcome: model.Unknown, Retryable: true, Message: "the call ended before the answer did", Err: context.Cause(ctx)}
			}
		}
		if r.Stream && word != "" {
			emit(word)
		}
	}
	return nil
}

// completion is the answer to what was asked.
func (q *question) completion(r *model.Request) (*model.Completion, error) {
	said := note
	if q.tools {
		said += " It never calls a tool: those of the request were ignored."
	}
	message, err := json.Marshal(map[string]any{"role": "assistant", "content": q.answer, "note": said})
	if err != nil {
		return nil, &model.Error{Outcome: model.Refused, Message: "the answer cannot be written as JSON", Err: err}
	}
	used := model.Usage{Input: tokens(q.said), Output: tokens(len(q.answer))}
	used.Cached, used.Reasoning = min(q.own.Cached, used.Input), min(q.own.Reasoning, used.Output)
	return &model.Completion{Text: q.answer, Message: message, FinishReason: "stop", Model: r.Model, Usage: used}, nil
}

func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }

// refuse refuses for good.
func refuse(message string) *model.Error {
	return &model.Error{Outcome: model.Refused, Status: 400, Message: message}
}
