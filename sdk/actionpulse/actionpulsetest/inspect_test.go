package actionpulsetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/actionpulsetest"
)

// returns is a run that always comes to the same.
func returns(output any, price string, err error) actionpulsetest.FlowFunc {
	return func(context.Context, json.RawMessage) (any, string, error) { return output, price, err }
}

// TestTrackedEventsAreStoredOnce: a tracker loses an answer, and repeats.
func TestTrackedEventsAreStoredOnce(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	s.Script(actionpulsetest.LoseAnswer().On("POST /v1/track"))
	tracker, err := actionpulse.NewTracker(s.URL, s.ServerKey, actionpulse.TrackerOptions{
		MaxAge: time.Millisecond, Logger: slog.New(slog.DiscardHandler), Policy: retry.Policy{Delays: retry.Delays{First: time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		id, err := tracker.Track(actionpulse.Event{Name: name, UserID: "u", Properties: map[string]any{"n": 1}})
		if err != nil {
			t.Fatal(err)
		}
		ids[id] = true
	}
	if err := tracker.Identify(actionpulse.Identity{AnonID: "a", UserID: "u"}); err != nil {
		t.Fatal(err)
	}
	if err := tracker.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored := 0
	for _, e := range s.Events() {
		if ids[e.EventID] {
			stored++
			delete(ids, e.EventID)
		}
	}
	if stored != 3 || len(s.Events()) != 4 {
		t.Errorf("%d of 3 events are stored, in all %+v", stored, s.Events())
	}
	if links := s.Links(); len(links) != 1 || links[0] != (actionpulsetest.Link{AnonID: "a", UserID: "u"}) {
		t.Errorf("links %+v", links)
	}
}

// TestAFlowRunsOnce: repeats while it runs and when it has ended get the one
// execution, and the customer pays once.
func TestAFlowRunsOnce(t *testing.T) {
	t.Parallel()
	s := actionpulsetest.NewServer(t)
	client, _ := clientOf(t, s)
	s.PublishFlow("greet", "2")
	s.Give("ada", "main", "10")
	runs, begun, goOn := 0, make(chan struct{}), make(chan struct{})
	s.SetFlow("greet", func(_ context.Context, input json.RawMessage) (any, string, error) {
		runs++
		close(begun)
		<-goOn
		return map[string]any{"said": input}, "1.5", nil
	})
	s.Script(actionpulsetest.LoseAnswer().On("POST /v1/operations/execute"))
	ask := actionpulse.Execute{Flow: "greet", Customer: "ada", Input: map[string]any{"text": "hi"}}
	go func() {
		<-begun
		if e := s.Executions(); len(e) != 1 || e[0].Status != "running" {
			t.Errorf("%+v while it runs", e)
		}
		if b := s.Balance("ada", "main"); b.Held != "2" {
			t.Errorf("%+v while it runs", b)
		}
		close(goOn)
	}()
	done, err := client.Executions.Execute(t.Context(), ask, actionpulse.WithKey("order-42:greet"))
	if err != nil || !done.Replayed || done.Charged != "1.5" || string(done.Output) != `{"said":{"text":"hi"}}` {
		t.Fatalf("%+v, %v", done, err)
	}
	if b := s.Balance("ada", "main"); runs != 1 || b.Posted != "8.5" || b.Held != "0" || len(s.Movements("ada")) != 2 {
		t.Errorf("%d runs, %+v", runs, b)
	}
}

// TestRunsThatFail: with the code that the function says, else step_failed; what
// was used beyond the hold is not taken.
func TestRunsThatFail(t *testing.T) {
	t.Parallel()
	for _, code := range []api.Code{api.CodeModelError, api.CodeStepFailed, api.CodeOutcomeUnknown, api.CodeExecutionTimeout} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			s := actionpulsetest.NewServer(t)
			client, _ := clientOf(t, s)
			s.PublishFlow("greet", "2")
			s.Give("ada", "main", "10")
			failure := error(&actionpulsetest.FlowError{Code: code, Message: "it failed"})
			if code == api.CodeStepFailed {
				failure = errors.New("it failed")
			}
			s.SetFlow("greet", returns(nil, "5", failure))
			ask := actionpulse.Execute{Flow: "greet", Customer: "ada"}
			for range 2 {
				_, err := client.Executions.Execute(t.Context(), ask, actionpulse.WithKey("k"))
				failed, ok := errors.AsType[*actionpulse.ExecutionError](err)
				if !ok || failed.Code != code {
					t.Fatalf("%v", err)
				}
			}
			e := s.Executions()
			if len(e) != 1 || e[0].Status != "failed" || e[0].Charged != "2" || e[0].Unbilled != "3" {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestAnExecutionIsCancelledAtTheEnd: a run that would never end does not keep
// the test from ending, and an execution that is cancelled has its context end.
func TestAnExecutionIsCancelledAtTheEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 2)
	endless := func(ctx context.Context, _ json.RawMessage) (any, string, error) {
		<-ctx.Done()
		ended <- struct{}{}
		return "nobody hears of it", "", context.Cause(ctx)
	}
	failures := failuresOf(func(s *actionpulsetest.Server) {
		s.SetFlow("endless", endless)
		for _, key := range []string{"first", "second"} {
			if status, body := ask(t, s, "POST /v1/operations/execute "+key, s.ProjectKey, `{"flow":"endless","input":{},"execution_mode":"async"}`); status != http.StatusAccepted {
				t.Errorf("%d %s", status, body)
			}
		}
		e := s.Executions()
		demand(t, s, "POST /v1/executions/"+e[0].ID+"/cancel", s.ProjectKey, "", http.StatusOK, `"cancelled"`)
		if e = s.Executions(); e[0].Status != "cancelled" || e[1].Status == "cancelled" {
			t.Errorf("%+v", e)
		}
	})
	if len(failures) > 0 {
		t.Error(failures)
	}
	if len(ended) == 0 {
		t.Error("the run that was under way at the end goes on")
	}
}
