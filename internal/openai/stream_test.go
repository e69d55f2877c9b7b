package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/model"
)

// read reads a stream, also byte by byte, and returns what was emitted.
func read(t *testing.T, body io.Reader) (*model.Completion, *model.Error, []string) {
	t.Helper()
	var emitted []string
	c, err := readStream(body, func(text string) { emitted = append(emitted, text) })
	e, ok := errors.AsType[*model.Error](err)
	if err != nil && !ok {
		t.Fatalf("%v is no model.Error", err)
	}
	return c, e, emitted
}

// text of a stream with all that streams do: comments, ids, other fields,
// several lines of data, line ends of each kind, tool calls in pieces and out
// of order, members nobody knows, a second choice.
const everything = "\ufeff: hello\r\n\r\n" +
	"id: 1\r\nevent: message\r\nretry: 5\r\ndata: {\"id\":\"chatcmpl-1\",\r\ndata: \"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}}]}\r\n\r\n" +
	"data:{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"He\"}},{\"index\":1,\"delta\":{\"content\":\"NO\"}}]}\n\n" +
	": ping\n\n" +
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"llo <b>\",\"reasoning_content\":\"be\"}}],\"usage\":null}\r\r" +
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"cause\",\"n\":1.50,\"details\":[{\"index\":0,\"text\":\"a\"}]}}]}\n\n" +
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"details\":[{\"index\":0,\"text\":\"b\"},{\"text\":\"c\"}],\"tool_calls\":[{\"index\":1,\"id\":\"call_b\",\"type\":\"function\",\"function\":{\"name\":\"second\",\"arguments\":\"{}\"}}]}}]}\n\n" +
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_a\",\"type\":\"function\",\"function\":{\"name\":\"first\",\"arguments\":\"{\\\"x\\\":\"}}]}}]}\n\n" +
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"\",\"function\":{\"name\":\"first\",\"arguments\":\"1}\"}}]}}]}\n\n" +
	"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n" +
	"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":4},\"completion_tokens_details\":{\"reasoning_tokens\":2}}}\n\n" +
	"data: [DONE]\n\n" +
	"data: not even JSON\n\n"

func TestReadStream(t *testing.T) {
	t.Parallel()
	message := `{"content":"Hello <b>","details":[{"index":0,"text":"ab"},{"text":"c"}],"n":1.50,"reasoning_content":"because","refusal":null,"role":"assistant",` +
		`"tool_calls":[{"function":{"arguments":"{\"x\":1}","name":"first"},"id":"call_a","type":"function"},` +
		`{"function":{"arguments":"{}","name":"second"},"id":"call_b","type":"function"}]}`
	want := &model.Completion{
		Text: "Hello <b>", Message: json.RawMessage(message), FinishReason: "tool_calls", Model: "m-1", RequestID: "chatcmpl-1",
		Usage: model.Usage{Input: 11, Output: 5, Cached: 4, Reasoning: 2},
	}
	for name, body := range map[string]io.Reader{
		"at once": strings.NewReader(everything), "byte by byte": iotest.OneByteReader(strings.NewReader(everything)),
	} {
		got, failure, emitted := read(t, body)
		if failure != nil {
			t.Fatalf("%s: %v", name, failure)
		}
		if diff := cmp.Diff(want, got); diff != "" || !cmp.Equal(emitted, []string{"He", "llo <b>"}) {
			t.Errorf("%s: %q %s", name, emitted, diff)
		}
	}
}

const (
	hello  = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"
	finish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
)

// TestStreamsThatEndEarly: only a reason to finish makes an answer of a stream.
func TestStreamsThatEndEarly(t *testing.T) {
	t.Parallel()
	partial := model.Usage{Input: 3, Output: 1}
	broken := iotest.ErrReader(io.ErrUnexpectedEOF)
	for _, c := range []struct {
		name string
		body io.Reader
		want *model.Error
	}{
		{"ends after its finish", strings.NewReader(hello + finish), nil},
		{"ends without an empty line", strings.NewReader(hello + strings.TrimRight(finish, "\n")), nil},
		{"ends without a finish", strings.NewReader(hello), &model.Error{Outcome: model.Unknown, Retryable: true, Message: "the stream ended before the answer did", Usage: partial, RequestID: "c"}},
		{"is done without a finish", strings.NewReader(hello + "data: [DONE]\n\n"), &model.Error{Outcome: model.Unknown, Retryable: true, Message: "the stream ended before the answer did", Usage: partial, RequestID: "c"}},
		{"is empty", strings.NewReader(""), &model.Error{Outcome: model.Unknown, Retryable: true, Message: "the stream ended before the answer did"}},
		{"is cut", io.MultiReader(strings.NewReader(hello), broken), &model.Error{Outcome: model.Unknown, Retryable: true, Message: "the connection ended without a whole answer", Usage: partial, RequestID: "c"}},
		{"is cut after its finish", io.MultiReader(strings.NewReader(hello+finish), broken), &model.Error{Outcome: model.Unknown, Retryable: true, Message: "the connection ended without a whole answer", Usage: partial, RequestID: "c"}},
		{"ends within an event", strings.NewReader(hello + finish + `data: {"choi`), &model.Error{Outcome: model.Unknown, Message: "an event of the stream is not one of a chat completion", Usage: partial, RequestID: "c"}},
		{"tells of an error", strings.NewReader(hello + `data: {"error":{"message":"overloaded","code":503}}` + "\n\n"), &model.Error{Status: 503, Message: "the provider has answered with an error: overloaded", Usage: partial, RequestID: "c"}},
		{"tells of an error before anything", strings.NewReader(`data: {"error":{"message":"overloaded","code":503}}` + "\n\n"), &model.Error{Status: 503, Retryable: true, Message: "the provider has answered with an error: overloaded"}},
		{"tells of an error that costs", strings.NewReader(`data: {"error":{"message":"lost","code":504},"usage":{"prompt_tokens":3}}` + "\n\n"), &model.Error{Status: 504, Message: "the provider has answered with an error: lost", Usage: model.Usage{Input: 3}}},
		{"tells of an error for good", strings.NewReader(`data: {"error":{"message":"filtered","type":"invalid_request_error"}}` + "\n\n"), &model.Error{Status: 400, Message: "the provider has answered with an error: filtered"}},
		{"has a line without end", io.MultiReader(strings.NewReader(hello+"data: "), endless{}), &model.Error{Message: "the answer is larger than 8 MiB", Usage: partial, RequestID: "c"}},
		{"has events without end", io.MultiReader(strings.NewReader(hello), lines(": "+strings.Repeat("x", 1<<16)+"\n\n")), &model.Error{Message: "the answer is larger than 8 MiB", Usage: partial, RequestID: "c"}},
		{"has text without end", io.MultiReader(strings.NewReader(hello), lines(`data: {"choices":[{"index":0,"delta":{"content":"`+strings.Repeat("x", 1<<16)+`"}}]}`+"\n\n")), &model.Error{Message: "the answer is larger than 8 MiB", Usage: partial, RequestID: "c"}},
	} {
		got, failure, _ := read(t, c.body)
		if failure != nil {
			failure.Err = nil
		}
		if diff := cmp.Diff(c.want, failure); diff != "" || (got == nil) != (c.want != nil) {
			t.Errorf("%s: %+v %s", c.name, got, diff)
		}
	}
}

// endless never ends and has no line.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// lines repeats a text for ever.
type repeated struct {
	text string
	at   int
}

func lines(text string) io.Reader { return &repeated{text: text} }

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// TestLongStreamsAreCheap: a text is not copied with each of its pieces, which
// would be 10 GB here.
func TestLongStreamsAreCheap(t *testing.T) {
	const pieces = 5_000
	x := strings.Repeat("x", 400)
	piece := fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":%q,"tool_calls":[{"index":0,"function":{"arguments":%q}}]}}]}`+"\n\n", x, x)
	body := io.MultiReader(io.LimitReader(lines(piece), int64(pieces*len(piece))), strings.NewReader(finish))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, failure, emitted := read(t, body)
	runtime.ReadMemStats(&after)
	if failure != nil || len(got.Text) != pieces*len(x) || len(emitted) != pieces || len(got.Message) < 2*pieces*len(x) {
		t.Fatal(failure)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// FuzzReadStream: whatever comes, a success is a message and a reason, and the
// text is what was emitted.
func FuzzReadStream(f *testing.F) {
	for _, seed := range []string{everything, hello + finish, hello, "data: [DONE]\n\n", `data: {"error":{"message":"m","code":429}}` + "\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, failure, emitted := read(t, strings.NewReader(body))
		if (got == nil) == (failure == nil) {
			t.Fatalf("%v and %v", got, failure)
		}
		if got != nil && (got.FinishReason == "" || !json.Valid(got.Message) || !isObject(got.Message) || got.Text != strings.Join(emitted, "")) {
			t.Errorf("%+v, %q", got, emitted)
		}
		if failure != nil && failure.Outcome == model.NotSent {
			t.Errorf("%+v", failure)
		}
	})
}
