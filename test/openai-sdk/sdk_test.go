//go:build openaisdk

// Package openaisdk compares our client of models with OpenAI's own: what both
// send for the same call, and what both read from the same answer. It needs
// node and what `npm ci` installs here: make sdk.
package openaisdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/openai"
	"github.com/actionpulse/actionpulse/internal/openai/openaitest"
)

// call is one call in the form that client.mjs reads, and its answer.
type call struct {
	Key    string                     `json:"key"`
	Stream bool                       `json:"stream"`
	Params map[string]json.RawMessage `json:"params"`
	reply  openaitest.Reply
	// fails says that both clients must call it a failure.
	fails bool
}

// read is what a client has read of an answer.
type read struct {
	Text         string     `json:"text"`
	Refusal      string     `json:"refusal"`
	ToolCalls    []toolCall `json:"tool_calls"`
	FinishReason string     `json:"finish_reason"`
	Model        string     `json:"model"`
	Usage        tokens     `json:"usage"`
	Deltas       []string   `json:"deltas"`
	// Error and Message are what a client says of a failure in its own words,
	// Status is the HTTP status of one.
	Error   string `json:"error"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

type toolCall struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type tokens struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Cached    int64 `json:"cached"`
	Reasoning int64 `json:"reasoning"`
}

const (
	messages = `[{"role":"system","content":"Be <kind> & \"brief\""},{"role":"user","content":[{"type":"text","text":"héllo 🙂"}]}]`
	tools    = `[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
)

func params(more string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{"model": json.RawMessage(`"gpt-x"`), "messages": json.RawMessage(messages)}
	if err := json.Unmarshal([]byte(more), &all); err != nil {
		panic(err)
	}
	return all
}

func calls() []call {
	return []call{
		{Key: "exe_1:plain", Params: params(`{"temperature":0.20,"max_completion_tokens":100,"metadata":{"a":"b"}}`), reply: openaitest.Reply{Body: plain}},
		{Key: "exe_1:tools", Params: params(`{"tools":` + tools + `,"tool_choice":"auto"}`), reply: openaitest.Reply{Body: called}},
		{Key: "exe_1:refused", Params: params(`{}`), reply: openaitest.Reply{Body: refused}},
		{Key: "exe_1:stream", Stream: true, Params: params(`{"seed":7}`), reply: openaitest.Stream(streamed)},
		{Key: "exe_1:stream-tools", Stream: true, Params: params(`{"tools":` + tools + `,"parallel_tool_calls":true}`), reply: openaitest.Stream(streamedCalls)},
		{Key: "exe_1:rate", Params: params(`{}`), fails: true, reply: openaitest.Reply{Status: 429, Body: `{"error":{"message":"too fast","type":"requests","code":"rate_limit_exceeded"}}`}},
		{Key: "exe_1:key", Params: params(`{}`), fails: true, reply: openaitest.Reply{Status: 401, Body: `{"error":{"message":"wrong key","type":"auth","code":"invalid_api_key"}}`}},
		{Key: "exe_1:unfinished", Stream: true, Params: params(`{}`), fails: true, reply: openaitest.Stream(unfinished)},
		{Key: "exe_1:broken", Stream: true, Params: params(`{}`), fails: true, reply: openaitest.Stream(broken)},
	}
}

// TestTheSameAsOpenAI makes every call with both clients against one server.
func TestTheSameAsOpenAI(t *testing.T) {
	t.Parallel()
	all := calls()
	replies := make([]openaitest.Reply, 0, 2*len(all))
	for range 2 {
		for _, c := range all {
			replies = append(replies, c.reply)
		}
	}
	server := openaitest.New(t, replies...)
	theirs := askTheirs(t, server.URL, all)
	if n := len(server.Requests()); n != len(all) || len(theirs) != n {
		t.Fatalf("their client has made %d calls and read %d answers", n, len(theirs))
	}
	ours := make([]read, len(all))
	for i, c := range all {
		ours[i] = askOurs(t, server.URL, c)
	}
	requests := server.Requests()
	if len(requests) != 2*len(all) {
		t.Fatalf("%d requests", len(requests))
	}
	for i, c := range all {
		compareRequests(t, c.Key, requests[i], requests[len(all)+i])
		compareAnswers(t, c, theirs[i], ours[i])
	}
}

// askTheirs makes the calls with OpenAI's client.
func askTheirs(t *testing.T, url string, all []call) []read {
	t.Helper()
	encoded, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "calls.json")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), "node", "client.mjs", url, file)
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("node client.mjs: %v\n%s", err, &said)
	}
	var answers []read
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var r read
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		answers = append(answers, r)
	}
	return answers
}

// askOurs makes a call with our client.
func askOurs(t *testing.T, url string, c call) read {
	t.Helper()
	p := openai.New(openai.Params{HTTP: callhttp.New(callhttp.Params{AllowPrivate: true, Agent: "test"}), Now: time.Now}).
		Open(model.Connection{BaseURL: url, APIKey: "sk-secret-of-the-test"})
	options := maps.Clone(c.Params)
	delete(options, "model")
	delete(options, "messages")
	var r read
	got, err := p.Complete(t.Context(), &model.Request{
		Model: "gpt-x", Messages: json.RawMessage(messages), Options: options, Stream: c.Stream, Key: c.Key,
	}, func(text string) { r.Deltas = append(r.Deltas, text) })
	if e, failed := errors.AsType[*model.Error](err); failed {
		return read{Error: e.Message, Status: e.Status}
	}
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Refusal   string `json:"refusal"`
		ToolCalls []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(got.Message, &m); err != nil {
		t.Fatal(err)
	}
	r.Text, r.Refusal, r.FinishReason, r.Model = got.Text, m.Refusal, got.FinishReason, got.Model
	r.Usage = tokens{got.Usage.Input, got.Usage.Output, got.Usage.Cached, got.Usage.Reasoning}
	for _, c := range m.ToolCalls {
		r.ToolCalls = append(r.ToolCalls, toolCall{c.ID, c.Type, c.Function.Name, c.Function.Arguments})
	}
	return r
}

// compareRequests: both bodies have the same members with the same values, and
// the headers that mean something are the same.
func compareRequests(t *testing.T, name string, theirs, ours openaitest.Request) {
	t.Helper()
	if theirs.Method != ours.Method || theirs.Path != ours.Path {
		t.Errorf("%s: %s %s, theirs %s %s", name, ours.Method, ours.Path, theirs.Method, theirs.Path)
	}
	for _, header := range []string{"Authorization", "Idempotency-Key", "Content-Type", "Accept"} {
		if diff := cmp.Diff(theirs.Header.Values(header), ours.Header.Values(header)); diff != "" || len(ours.Header.Values(header)) != 1 {
			t.Errorf("%s: the header %s (- theirs, + ours): %s", name, header, diff)
		}
	}
	a, b := members(t, theirs.Body), members(t, ours.Body)
	for _, member := range slices.Sorted(maps.Keys(a)) {
		if diff := cmp.Diff(a[member], b[member]); diff != "" {
			t.Errorf("%s: the member %s (- theirs, + ours): %s", name, member, diff)
		}
		delete(b, member)
	}
	// They say what is the default, too: stream false is none.
	if len(b) > 0 {
		t.Errorf("%s: only ours has %v", name, b)
	}
}

func members(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return m
}

// compareAnswers: both have read the same, or both call it a failure.
func compareAnswers(t *testing.T, c call, theirs, ours read) {
	t.Helper()
	if c.fails {
		if theirs.Error == "" || ours.Error == "" {
			t.Errorf("%s: a success: theirs %+v, ours %+v", c.Key, theirs, ours)
		}
		if c.reply.Status != 0 && (theirs.Status != ours.Status || ours.Status != c.reply.Status) {
			t.Errorf("%s: status %d, theirs %d", c.Key, ours.Status, theirs.Status)
		}
		return
	}
	if diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty()); diff != "" || ours.Error != "" || ours.FinishReason == "" || ours.Usage.Output == 0 {
		t.Errorf("%s (- theirs, + ours): %s", c.Key, diff)
	}
}
