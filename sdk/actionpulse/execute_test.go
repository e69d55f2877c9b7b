package actionpulse_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

const (
	running   = `{"execution":{"id":"x-1","status":"running","idempotency_key":"k"}}`
	succeeded = `{"execution":{"id":"x-1","status":"succeeded","output":{"a":1},"charged":"2","idempotency_key":"k"}}`
	failed    = `{"execution":{"id":"x-1","status":"failed","error":{"code":"model_error","message":"it broke"},"idempotency_key":"k"}}`
	cancelled = `{"execution":{"id":"x-1","status":"cancelled","idempotency_key":"k"}}`
)

var summary = actionpulse.Execute{Flow: "f", Input: map[string]any{"b": 1, "a": "<ü>"}}

// TestExecuteWaits: as long as the execution runs it is asked for again, with
// the same bytes and the same key, after what the server says; the answer to
// the first request decides whether it was a replay.
func TestExecuteWaits(t *testing.T) {
	t.Parallel()
	replay := []string{"Idempotency-Replayed", "true", "Retry-After", "3"}
	s := play(t, says(202, running, "Retry-After", "1"), says(200, running, replay...), hangsUp, says(200, succeeded, replay...))
	var h hasty
	done, err := newClients(t, s.URL, actionpulse.WithRetry(h.policy())).Executions.Execute(t.Context(), summary, actionpulse.WithKey("k"))
	if err != nil || done.Replayed || done.Status != actionpulse.StatusSucceeded || done.Charged != "2" || string(done.Output) != `{"a":1}` {
		t.Fatalf("%+v, %v", done, err)
	}
	got := s.requests()
	for _, r := range got {
		if r.body != got[0].body || r.header.Get("Idempotency-Key") != "k" || r.header.Get("Prefer") != "wait=30" {
			t.Errorf("%+v", r)
		}
	}
	if len(got) != 4 || len(h.waits) != 3 || h.waits[0] != time.Second || h.waits[1] != 3*time.Second {
		t.Errorf("%d requests after waits of %v", len(got), h.waits)
	}
}

func TestExecuteReplayed(t *testing.T) {
	t.Parallel()
	s := play(t, says(200, succeeded, "Idempotency-Replayed", "true"))
	done, err := newClients(t, s.URL).Executions.Execute(t.Context(), summary)
	if err != nil || !done.Replayed || len(s.requests()) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestExecuteFails: a failure is the same whether it is heard at first, as an
// error, or on a repeat, as an execution; and also when what it is cannot be
// read any more. It is never repeated.
func TestExecuteFails(t *testing.T) {
	t.Parallel()
	first := refuses(502, "model_error", `,"key":"taken","execution_id":"x-1"`)
	for name, answers := range map[string][]http.HandlerFunc{
		"first answer":          {first, says(200, failed)},
		"first, cannot be read": {first, refuses(403, "forbidden", "")},
		"replay":                {says(200, failed, "Idempotency-Replayed", "true")},
		"after a while":         {says(202, running), says(200, failed, "Idempotency-Replayed", "true")},
	} {
		s := play(t, answers...)
		done, err := hurried(t, s.URL).Executions.Execute(t.Context(), summary, actionpulse.WithKey("k"))
		e, ok := errors.AsType[*actionpulse.ExecutionError](err)
		if !ok || e.ID != "x-1" || e.Code != "model_error" || e.Message == "" || e.Status != actionpulse.StatusFailed || e.IdempotencyKey != "k" {
			t.Fatalf("%s: %v", name, err)
		}
		if done == nil || done.ID != "x-1" || done.Status != actionpulse.StatusFailed {
			t.Errorf("%s: %+v", name, done)
		}
		if refusal, ok := errors.AsType[*actionpulse.Error](err); ok && refusal.Applied != actionpulse.AppliedYes {
			t.Errorf("%s: %+v", name, refusal)
		}
		if len(s.requests()) != len(answers) {
			t.Errorf("%s: %d requests", name, len(s.requests()))
		}
	}
}

// TestExecuteRefused: what was refused before an execution was made is no
// failed execution.
func TestExecuteRefused(t *testing.T) {
	t.Parallel()
	s := play(t, refuses(404, "flow_not_found", `,"key":"free"`))
	done, err := newClients(t, s.URL).Executions.Execute(t.Context(), summary)
	if _, ok := errors.AsType[*actionpulse.ExecutionError](err); ok || done != nil || actionpulse.CodeOf(err) != "flow_not_found" {
		t.Errorf("%+v, %v", done, err)
	}
	for _, input := range []any{"text", 1, []int{1}, make(chan int), func() {}} {
		_, err := newClients(t, s.URL).Executions.Execute(t.Context(), actionpulse.Execute{Flow: "f", Input: input})
		if asError(t, err).Attempts != 0 {
			t.Errorf("%T: %v", input, err)
		}
	}
	if len(s.requests()) != 1 {
		t.Error("input that is no object was sent")
	}
}

// TestExecuteLeft: who leaves gets the execution as it was last seen, and the
// key to come back with.
func TestExecuteLeft(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := play(t, says(202, running))
	c := newClients(t, s.URL, actionpulse.WithRetry(retry.Policy{Sleep: func(ctx context.Context, _ time.Duration) error {
		cancel()
		return context.Cause(ctx)
	}}))
	done, err := c.Executions.Execute(ctx, summary, actionpulse.WithKey("k"))
	e := asError(t, err)
	if !errors.Is(err, context.Canceled) || done == nil || done.ID != "x-1" || e.Applied != actionpulse.AppliedYes || e.IdempotencyKey != "k" {
		t.Errorf("%+v, %v", done, err)
	}
	if len(s.requests()) != 1 {
		t.Errorf("%d requests", len(s.requests()))
	}
}

func TestStartAndWait(t *testing.T) {
	t.Parallel()
	s := play(t, says(202, running), says(200, running), says(200, cancelled))
	c := hurried(t, s.URL)
	begun, err := c.Executions.Start(t.Context(), summary)
	if err != nil || begun.Status != actionpulse.StatusRunning {
		t.Fatalf("%+v, %v", begun, err)
	}
	ended, err := c.Executions.Wait(t.Context(), begun.ID)
	e, ok := errors.AsType[*actionpulse.ExecutionError](err)
	if !ok || e.Status != actionpulse.StatusCancelled || e.Code != "" || ended.Status != actionpulse.StatusCancelled {
		t.Errorf("%+v, %v", ended, err)
	}
}

// TestFollow: a stream that breaks off is opened again until the execution has
// ended; a stream that brings nothing is not opened for ever.
func TestFollow(t *testing.T) {
	t.Parallel()
	stream := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
		}
	}
	const state, end = "event: execution\ndata: " + running + "\n\n", "event: execution\ndata: " + failed + "\n\n"
	s := play(t,
		stream(":\n\n"+state+"event: step\ndata: {\"step\":\"say\",\"status\":\"started\"}\n\n"+"event: delta\ndata: {\"step\":\"say\",\n"),
		hangsUp,
		stream(state+"event: of_the_future\ndata: 1\n\nevent: delta\ndata: {\"step\":\"say\",\ndata: \"text\":\"hi\"}\n\n"+end+state),
	)
	var got strings.Builder
	for e, err := range hurried(t, s.URL).Executions.Follow(t.Context(), "x-1") {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Execution != nil:
			got.WriteString(e.Execution.Status + " ")
		case e.Step != nil:
			got.WriteString(e.Step.Step + " ")
		case e.Delta != nil:
			got.WriteString(e.Delta.Text + " ")
		}
	}
	if got.String() != "running say running hi failed " || len(s.requests()) != 3 {
		t.Errorf("%q of %d requests", got.String(), len(s.requests()))
	}

	// Each connection brings a step: none of them is in vain.
	news := stream(state + "event: step\ndata: {\"step\":\"say\"}\n\n")
	s = play(t, news, news, news, news, news, news, news, stream(end))
	if err := drain(hurried(t, s.URL).Executions.Follow(t.Context(), "x-1")); err != nil || len(s.requests()) != 8 {
		t.Errorf("%v after %d requests", err, len(s.requests()))
	}
	s = play(t, stream(state))
	if err := drain(hurried(t, s.URL).Executions.Follow(t.Context(), "x-1")); asError(t, err).Err == nil || len(s.requests()) != 6 {
		t.Errorf("%v after %d requests", err, len(s.requests()))
	}
	s = play(t, stream("event: execution\ndata: {\n\n"))
	if err := drain(hurried(t, s.URL).Executions.Follow(t.Context(), "x-1")); err == nil || len(s.requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.requests()))
	}
	s = play(t, refuses(404, "not_found", ""))
	if err := drain(hurried(t, s.URL).Executions.Follow(t.Context(), "x-1")); actionpulse.CodeOf(err) != "not_found" || len(s.requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.requests()))
	}
}
