// Package openai calls models by the wire format of OpenAI's chat completions,
// which most servers of models understand: POST to the base URL followed by
// /chat/completions.
//
// Invariants:
//   - a request that may have arrived and has no answer of the provider itself
//     is [model.Unknown]: a connection that ended, a time that was over, a
//     stream without its end, an answer that cannot be read, a 502 of a proxy, a
//     504 of anybody. An answer is [model.Refused], and only without a connection
//     is something [model.NotSent];
//   - an error with tokens that were counted is [model.Refused] for good;
//   - a request is sent once for each call: package callhttp sees to that;
//   - while a provider asks for patience, it is not called;
//   - the API key is in the header Authorization and in no message.
package openai

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/model"
)

const (
	// path is what is added to the base URL.
	path = "/chat/completions"
	// maxAnswer is how large an answer may be, and what a stream amounts to.
	maxAnswer = 8 << 20
	// maxStream is how large a stream may be on the wire, where a few letters
	// of text take some hundred bytes; maxEvent is for one event of it.
	maxStream = 64 << 20
	maxEvent  = 1 << 20
	// maxRefusal is how much of a refusal is read.
	maxRefusal = 64 << 10
)

// Params configures an [Adapter]; every member must be set.
type Params struct {
	HTTP *callhttp.Client
	Now  func() time.Time
}

// Adapter makes providers.
type Adapter struct{ params Params }

// New returns an Adapter.
func New(p Params) *Adapter { return &Adapter{params: p} }

// Open returns the provider at the other end of a connection. What is known of
// its limits lives as long as it does.
func (a *Adapter) Open(c model.Connection) model.Provider {
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return &provider{params: a.params, connection: c, gate: newGate(c, a.params.Now)}
}

type provider struct {
	params     Params
	connection model.Connection
	gate       *gate
}

// Complete implements model.Provider.
func (p *provider) Complete(ctx context.Context, r *model.Request, emit func(text string)) (*model.Completion, error) {
	if !r.Stream {
		emit = func(string) {}
	}
	body, err := encodeRequest(r)
	if err != nil {
		return nil, &model.Error{Outcome: model.NotSent, Message: "the request cannot be written as JSON", Err: err}
	}
	leave, err := p.gate.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if p.connection.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.connection.Timeout)
		defer cancel()
	}
	response, err := p.params.HTTP.Open(ctx, &callhttp.Request{
		Method: http.MethodPost, URL: p.connection.BaseURL + path, Header: p.header(r), Body: body,
	})
	if err != nil {
		return nil, failed(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing more is wanted of it
	completion, err := p.answer(response, emit)
	if err == nil {
		return completion, nil
	}
	return nil, p.describe(err, response)
}

func (p *provider) header(r *model.Request) http.Header {
	h := http.Header{}
	h.Set("Accept", "application/json")
	h.Set("Content-Type", "application/json")
	if p.connection.APIKey != "" {
		h.Set("Authorization", "Bearer "+string(p.connection.APIKey))
	}
	if r.Key != "" {
		h.Set("Idempotency-Key", r.Key)
	}
	return h
}

// answer reads an answer. Its form is what it says it is: a server that does
// not stream may be asked to.
func (p *provider) answer(response *http.Response, emit func(text string)) (*model.Completion, error) {
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, p.refusal(response)
	}
	var completion *model.Completion
	var err error
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/event-stream" {
		completion, err = readStream(response.Body, emit)
	} else {
		completion, err = readWhole(response.Body, emit)
	}
	if err != nil {
		return nil, err
	}
	completion.Status = response.StatusCode
	if said := requestID(response); said != "" {
		completion.RequestID = said
	}
	return completion, nil
}

// describe completes an error with what the answer's header says, and keeps
// the key out of it.
func (p *provider) describe(err error, response *http.Response) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return err
	}
	e.Status = response.StatusCode
	if said := requestID(response); said != "" {
		e.RequestID = said
	}
	if key := string(p.connection.APIKey); key != "" {
		e.Message = strings.ReplaceAll(e.Message, key, "…")
	}
	return e
}

// failed is why there is no answer.
func failed(err error) error {
	f, ok := errors.AsType[*callhttp.Error](err)
	if !ok {
		return err
	}
	e := &model.Error{Outcome: model.NotSent, Message: f.Message, Retryable: f.Retryable, Err: f.Err}
	if f.Sent {
		e.Outcome = model.Unknown
	}
	return e
}

func requestID(response *http.Response) string { return shorten(response.Header.Get("X-Request-Id")) }
