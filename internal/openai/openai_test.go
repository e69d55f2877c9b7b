package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/openai"
	"github.com/actionpulse/actionpulse/internal/openai/openaitest"
)

const key = "sk-secret-of-the-test"

var start = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

// open connects to a server; the clock stands still.
func open(s *openaitest.Server, c model.Connection) model.Provider {
	c.BaseURL, c.APIKey = s.URL, key
	return openai.New(openai.Params{
		HTTP: callhttp.New(callhttp.Params{AllowPrivate: true, Agent: "test"}), Now: func() time.Time { return start },
	}).Open(c)
}

// ask is a request of the test.
func ask(stream bool) *model.Request {
	return &model.Request{
		Model: "gpt-x", Messages: json.RawMessage(`[{"role":"user","content":"<hi> & ü"}]`), Stream: stream, Key: "exe_1:say",
		Options: map[string]json.RawMessage{"temperature": json.RawMessage("0.20"), "stream_options": json.RawMessage("{}"), "model": json.RawMessage(`"other"`)},
	}
}

// complete makes a call and returns what was emitted, too.
func complete(t *testing.T, p model.Provider, r *model.Request) (*model.Completion, *model.Error, []string) {
	t.Helper()
	return completeWithin(t, t.Context(), p, r)
}

func completeWithin(t *testing.T, ctx context.Context, p model.Provider, r *model.Request) (*model.Completion, *model.Error, []string) { //nolint:revive // t comes first
	t.Helper()
	var emitted []string
	c, err := p.Complete(ctx, r, func(text string) { emitted = append(emitted, text) })
	if err == nil {
		return c, nil, emitted
	}
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Fatalf("%v is no model.Error", err)
	}
	if strings.Contains(e.Message, key) {
		t.Errorf("the message %q holds the key", e.Message)
	}
	return nil, e, emitted
}

const plain = `{"id":"chatcmpl-1","model":"gpt-x-2026","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null,"x":[1.50]},"finish_reason":"stop"}],
"usage":{"prompt_tokens":117231,"completion_tokens":7,"total_tokens":117238,"prompt_tokens_details":{"cached_tokens":115584},"completion_tokens_details":{"reasoning_tokens":3}}}`

func TestComplete(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t, openaitest.Reply{Body: plain, Header: map[string]string{"X-Request-Id": "req_1"}})
	got, failure, emitted := complete(t, open(s, model.Connection{}), ask(false))
	if failure != nil {
		t.Fatal(failure)
	}
	want := &model.Completion{
		Text: "Hello", Message: json.RawMessage(`{"role":"assistant","content":"Hello","refusal":null,"x":[1.50]}`), FinishReason: "stop",
		Model: "gpt-x-2026", Status: 200, RequestID: "req_1", Usage: model.Usage{Input: 117231, Output: 7, Cached: 115584, Reasoning: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" || emitted != nil {
		t.Errorf("%v, %s", emitted, diff)
	}
	r := s.Requests()[0]
	body := `{"messages":[{"role":"user","content":"<hi> & ü"}],"model":"gpt-x","temperature":0.20}`
	if r.Method != "POST" || r.Path != "/v1/chat/completions" || string(r.Body) != body {
		t.Errorf("%s %s %s", r.Method, r.Path, r.Body)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + key, "Idempotency-Key": "exe_1:say", "Content-Type": "application/json", "Accept": "application/json",
	} {
		if r.Header.Get(name) != value || len(r.Header.Values(name)) != 1 {
			t.Errorf("%s: %q", name, r.Header.Values(name))
		}
	}
}

func TestCompleteReadsWhatServersMake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body, text, finish string
		usage                    model.Usage
		id                       string
	}{
		{"no usage", `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`, "a", "stop", model.Usage{}, ""},
		{"null everywhere", `{"id":"1","choices":[{"message":{"content":null},"finish_reason":null}],"usage":null,"error":null}`, "", "", model.Usage{}, "1"},
		{"parts", `{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}}]}`, "ab", "", model.Usage{}, ""},
		{"odd counts", `{"choices":[{"message":{}}],"usage":{"prompt_tokens":2.0,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":9},"completion_tokens_details":null}}`, "", "", model.Usage{Input: 2, Cached: 2}, ""},
	} {
		s := openaitest.New(t, openaitest.Reply{Body: c.body})
		got, failure, _ := complete(t, open(s, model.Connection{}), ask(false))
		if failure != nil || got.Text != c.text || got.FinishReason != c.finish || got.Usage != c.usage || got.RequestID != c.id {
			t.Errorf("%s: %+v, %v", c.name, got, failure)
		}
	}
}

// TestServersThatDoNotStream: who asks for a stream gets the text at once.
func TestServersThatDoNotStream(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t, openaitest.Reply{Body: plain})
	got, failure, emitted := complete(t, open(s, model.Connection{}), ask(true))
	if failure != nil || got.Text != "Hello" || !cmp.Equal(emitted, []string{"Hello"}) {
		t.Errorf("%+v, %q, %v", got, emitted, failure)
	}
	var body map[string]any
	if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if body["stream"] != true || !cmp.Equal(body["stream_options"], any(map[string]any{"include_usage": true})) {
		t.Errorf("%v", body)
	}
}

// TestOutcomes: what is known after each end of a call.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const said = `{"error":{"message":"no sk-secret-of-the-test","type":"t","code":"c"}}`
	for _, c := range []struct {
		name  string
		reply openaitest.Reply
		want  model.Error
	}{
		{"bad request", openaitest.Reply{Status: 400, Body: said}, model.Error{Status: 400, Message: "the provider has answered 400: no …"}},
		{"key", openaitest.Reply{Status: 401, Body: said}, model.Error{Status: 401, Message: "the provider has answered 401: no …"}},
		{"rights", openaitest.Reply{Status: 403, Body: `{"error":"text"}`}, model.Error{Status: 403, Message: "the provider has answered 403: text"}},
		{"no such model", openaitest.Reply{Status: 404, Body: said}, model.Error{Status: 404, Message: "the provider has answered 404: no …"}},
		{"validation", openaitest.Reply{Status: 422, Body: `{"detail":"x"}`}, model.Error{Status: 422, Message: "the answer was 422, and not in the form of a provider"}},
		{"in lines", openaitest.Reply{Status: 400, Body: `{"error":{"message":"a\nb\u0000c"}}`}, model.Error{Status: 400, Message: "the provider has answered 400: a b c"}},
		{"redirect", openaitest.Reply{Status: 308, Header: map[string]string{"Location": "/x"}}, model.Error{Status: 308, Message: "the answer was 308, a redirect: none is followed, base_url must name where it leads"}},
		{"timeout of the body", openaitest.Reply{Status: 408}, model.Error{Status: 408, Retryable: true, Message: "the answer was 408, and not in the form of a provider"}},
		{"lock", openaitest.Reply{Status: 409, Body: said}, model.Error{Status: 409, Retryable: true, Message: "the provider has answered 409: no …"}},
		{"lock, for good", openaitest.Reply{Status: 409, Body: said, Header: map[string]string{"X-Should-Retry": "false"}}, model.Error{Status: 409, Message: "the provider has answered 409: no …"}},
		{"rate", openaitest.Reply{Status: 429, Body: said, Header: map[string]string{"Retry-After": "7"}}, model.Error{Status: 429, Retryable: true, After: 7 * time.Second, Message: "the provider has answered 429: no …"}},
		{"rate until", openaitest.Reply{Status: 429, Header: map[string]string{"Retry-After": "Fri, 01 May 2026 10:00:09 GMT"}}, model.Error{Status: 429, Retryable: true, After: 9 * time.Second, Message: "the answer was 429, and not in the form of a provider"}},
		{"rate in ms", openaitest.Reply{Status: 429, Body: said, Header: map[string]string{"Retry-After": "7", "Retry-After-Ms": "250.5"}}, model.Error{Status: 429, Retryable: true, After: 250500 * time.Microsecond, Message: "the provider has answered 429: no …"}},
		{"rate in parts of seconds", openaitest.Reply{Status: 429, Body: said, Header: map[string]string{"Retry-After": "0.5"}}, model.Error{Status: 429, Retryable: true, After: 500 * time.Millisecond, Message: "the provider has answered 429: no …"}},
		{"quota", openaitest.Reply{Status: 429, Body: `{"error":{"message":"pay","code":"insufficient_quota"}}`, Header: map[string]string{"Retry-After": "7"}}, model.Error{Status: 429, Message: "the provider has answered 429: pay"}},
		{"failure", openaitest.Reply{Status: 500, Body: said}, model.Error{Status: 500, Retryable: true, Message: "the provider has answered 500: no …"}},
		{"failure, bare", openaitest.Reply{Status: 500}, model.Error{Status: 500, Retryable: true, Message: "the answer was 500, and not in the form of a provider"}},
		{"busy", openaitest.Reply{Status: 503, Kind: "text/html", Body: "<html>"}, model.Error{Status: 503, Retryable: true, Message: "the answer was 503, and not in the form of a provider"}},
		{"a gateway of theirs", openaitest.Reply{Status: 502, Body: said}, model.Error{Status: 502, Retryable: true, Message: "the provider has answered 502: no …"}},
		{"overloaded", openaitest.Reply{Status: 529, Body: said}, model.Error{Status: 529, Retryable: true, Message: "the provider has answered 529: no …"}},
		{"a gateway", openaitest.Reply{Status: 502, Kind: "text/html", Body: "<html>"}, model.Error{Outcome: model.Unknown, Status: 502, Retryable: true, Message: "the answer was 502, and not in the form of a provider"}},
		{"a slow gateway", openaitest.Reply{Status: 504, Body: `{"message":"x"}`}, model.Error{Outcome: model.Unknown, Status: 504, Retryable: true, Message: "the answer was 504, and not in the form of a provider"}},
		{"a slow gateway of theirs", openaitest.Reply{Status: 504, Body: said}, model.Error{Outcome: model.Unknown, Status: 504, Retryable: true, Message: "the provider has answered 504: no …"}},
		{"a failure that costs", openaitest.Reply{Status: 500, Body: `{"error":{"message":"m"},"usage":{"prompt_tokens":3,"completion_tokens":1}}`, Header: map[string]string{"Retry-After": "7"}}, model.Error{Status: 500, Message: "the provider has answered 500: m", Usage: model.Usage{Input: 3, Output: 1}}},
		{"a slow gateway that costs", openaitest.Reply{Status: 504, Body: `{"error":"m","usage":{"completion_tokens":1}}`}, model.Error{Status: 504, Message: "the provider has answered 504: m", Usage: model.Usage{Output: 1}}},
		{"another form that costs", openaitest.Reply{Status: 503, Body: `{"detail":"x","usage":{"prompt_tokens":3}}`}, model.Error{Status: 503, Message: "the answer was 503, and not in the form of a provider", Usage: model.Usage{Input: 3}}},
		{"a failure that costs nothing", openaitest.Reply{Status: 500, Body: `{"error":{"message":"m"},"usage":{"prompt_tokens":0}}`}, model.Error{Status: 500, Retryable: true, Message: "the provider has answered 500: m"}},
		{"a failure that costs, in an odd form", openaitest.Reply{Status: 500, Body: `{"error":{"message":"m"},"usage":{"prompt_tokens_details":"x","prompt_tokens":3}}`}, model.Error{Status: 500, Message: "the provider has answered 500: m", Usage: model.Usage{Input: 3}}},
		{"a failure that counts oddly", openaitest.Reply{Status: 500, Body: `{"error":{"message":"m"},"usage":"none"}`}, model.Error{Status: 500, Retryable: true, Message: "the provider has answered 500: m"}},
		{"another gateway", openaitest.Reply{Status: 524}, model.Error{Outcome: model.Unknown, Status: 524, Message: "the answer was 524, and not in the form of a provider"}},
		{"a refusal that is cut", openaitest.Reply{Status: 400, Body: `{"err`, Cut: true}, model.Error{Status: 400, Message: "the answer was 400, and not in the form of a provider"}},
		{"an answer that is cut", openaitest.Reply{Body: plain[:40], Cut: true}, model.Error{Outcome: model.Unknown, Status: 200, Retryable: true, Message: "the connection ended without a whole answer"}},
		{"no JSON", openaitest.Reply{Body: "<html>"}, model.Error{Outcome: model.Unknown, Status: 200, Message: "the answer is not a chat completion"}},
		{"no choices", openaitest.Reply{Body: `{"id":"x","choices":[],"usage":{"prompt_tokens":3}}`}, model.Error{Outcome: model.Unknown, Status: 200, Message: "the answer is not a chat completion", RequestID: "x", Usage: model.Usage{Input: 3}}},
		{"an error as a success", openaitest.Reply{Body: `{"error":{"message":"m","code":429}}`}, model.Error{Status: 200, Retryable: true, Message: "the provider has answered with an error: m"}},
		{"an error as a success, that costs", openaitest.Reply{Body: `{"error":{"message":"m","code":429},"usage":{"prompt_tokens":3}}`}, model.Error{Status: 200, Message: "the provider has answered with an error: m", Usage: model.Usage{Input: 3}}},
		{"a gateway as a success", openaitest.Reply{Body: `{"error":{"message":"m","code":504}}`}, model.Error{Outcome: model.Unknown, Status: 200, Retryable: true, Message: "the provider has answered with an error: m"}},
		{"too large", openaitest.Reply{Body: strings.Repeat(" ", 8<<20) + plain}, model.Error{Status: 200, Message: "the answer is larger than 8 MiB"}},
	} {
		s := openaitest.New(t, c.reply)
		_, got, emitted := complete(t, open(s, model.Connection{}), ask(false))
		if got == nil {
			t.Errorf("%s: a success", c.name)
			continue
		}
		got.Err = nil
		if diff := cmp.Diff(&c.want, got); diff != "" || len(emitted) > 0 {
			t.Errorf("%s: %v %s", c.name, emitted, diff)
		}
		if n := len(s.Requests()); n != 1 {
			t.Errorf("%s: %d requests", c.name, n)
		}
	}
}

// TestTimeout: a call that was heard and not answered is Unknown.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t, openaitest.Reply{Body: plain})
	url := s.URL
	silent := callhttp.New(callhttp.Params{AllowPrivate: true})
	p := openai.New(openai.Params{HTTP: silent, Now: time.Now}).Open(model.Connection{BaseURL: hang(t), Timeout: time.Second})
	if _, e, _ := complete(t, p, ask(false)); e == nil || e.Outcome != model.Unknown || e.Message != "there was no answer in time" || e.Status != 0 {
		t.Errorf("%+v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p = openai.New(openai.Params{HTTP: silent, Now: time.Now}).Open(model.Connection{BaseURL: url})
	if _, e, _ := completeWithin(t, ctx, p, ask(false)); e == nil || e.Outcome != model.NotSent {
		t.Errorf("%+v", e)
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
