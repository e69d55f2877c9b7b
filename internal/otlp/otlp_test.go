package otlp_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	steps "github.com/actionpulse/actionpulse/internal/flow/step/model"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/otlp"
)

// sink is a collector that keeps the spans it is sent.
type sink struct {
	mu    sync.Mutex
	spans map[string]*tracev1.Span
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(data, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range request.GetResourceSpans() {
		for _, scope := range one.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.spans[span.GetName()] = span
			}
		}
	}
}

func attributes(list []*common.KeyValue) map[string]any {
	out := map[string]any{}
	for _, one := range list {
		switch v := one.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[one.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[one.GetKey()] = v.IntValue
		}
	}
	return out
}

func TestExport(t *testing.T) {
	t.Parallel()
	s := &sink{spans: map[string]*tracev1.Span{}}
	server := httptest.NewServer(s)
	defer server.Close()
	e, err := otlp.New(t.Context(), otlp.Params{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	program := compile(t)
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	call := execution.Call{
		Place: execution.Place{Step: "say"}, Kind: "model", Status: execution.CallUnknown, Provider: "openai", Model: "gpt-x", Attempt: 1,
		Usage: model.Usage{Input: 117231, Output: 7, Cached: 115584, Reasoning: 3}, DerivedKey: "x:say", Message: "it was interrupted",
		Request: []byte(`"a secret"`), StartedAt: at.Add(time.Second), FinishedAt: at.Add(2 * time.Second),
	}
	e.Export(execution.NewTrace(&execution.Execution{
		ID: "x", Flow: "hello", Version: 3, Status: execution.Failed, Failure: &execution.Failure{Code: "outcome_unknown", Message: "nobody knows"},
		Input: []byte(`{"text": "a secret"}`), CreatedAt: at, StartedAt: at, FinishedAt: at.Add(3 * time.Second),
	}, []execution.Step{{
		Place: execution.Place{Step: "say"}, Type: "model", State: execution.StepFailed, Attempt: 1, StartedAt: at, FinishedAt: at.Add(2 * time.Second),
		Failure: &execution.Failure{Code: "outcome_unknown", Message: "nobody knows"},
	}}, []execution.Call{call}, program))
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	root, step, chat := s.spans["execute hello"], s.spans["step say"], s.spans["chat gpt-x"]
	if root == nil || step == nil || chat == nil || len(s.spans) != 3 {
		t.Fatalf("%v", s.spans)
	}
	if string(step.GetParentSpanId()) != string(root.GetSpanId()) || string(chat.GetParentSpanId()) != string(step.GetSpanId()) {
		t.Error("the spans are no tree")
	}
	if root.GetStartTimeUnixNano() != uint64(at.UnixNano()) || root.GetEndTimeUnixNano() != uint64(at.Add(3*time.Second).UnixNano()) {
		t.Errorf("from %d to %d", root.GetStartTimeUnixNano(), root.GetEndTimeUnixNano())
	}
	for name, want := range map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-x",
		"gen_ai.usage.input_tokens": int64(117231), "gen_ai.usage.output_tokens": int64(7), "error.type": "unknown",
		"actionpulse.call.derived_key": "x:say",
	} {
		if got := attributes(chat.GetAttributes())[name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, span := range s.spans {
		if span.GetStatus().GetCode() != tracev1.Status_STATUS_CODE_ERROR {
			t.Errorf("%s has not failed", span.GetName())
		}
		for name, value := range attributes(span.GetAttributes()) {
			if value == "a secret" {
				t.Errorf("%s tells what was said: %s", span.GetName(), name)
			}
		}
	}
}

// TestExportDoesNotWait: a collector that is away holds nothing up.
func TestExportDoesNotWait(t *testing.T) {
	t.Parallel()
	e, err := otlp.New(t.Context(), otlp.Params{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	program := compile(t)
	begin := time.Now()
	for range 10_000 {
		e.Export(execution.NewTrace(&execution.Execution{Flow: "f", CreatedAt: begin, FinishedAt: begin}, nil, nil, program))
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if _, err := otlp.New(t.Context(), otlp.Params{Endpoint: "nowhere"}); err == nil {
		t.Error("a collector without an address was taken")
	}
}

func compile(t *testing.T) *flow.Program {
	t.Helper()
	canonical, err := flow.Canonical([]byte("steps: [{id: say, type: model, provider: echo, model: echo-1, messages: [{role: user, content: hi}]}]"), flow.YAML)
	if err != nil {
		t.Fatal(err)
	}
	p, err := flow.Compile([]step.Type{steps.New(nil)}, canonical)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
