package executionstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// What an execution keeps is bounded, and so is what a page of a list holds.
func TestWhatAnExecutionMayKeep(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		s := b.serve(t, 4)
		large := strings.Repeat("x", 900<<10)
		text, err := json.Marshal(map[string]string{"t": large})
		if err != nil {
			t.Fatal(err)
		}
		// Requests and responses: a part is kept, and what was left out is told.
		slug := b.next(t, "steps: [{id: a, type: http}]\noutput: \"${steps.a.output}\"\n", func(context.Context, *step.Run, string) (step.Result, error) {
			return step.Result{
				Value: map[string]any{"output": large},
				Call:  &step.Call{Kind: "http", Status: 200, Request: json.RawMessage(`"` + large + `"`), Response: json.RawMessage(`"short"`)},
			}, nil
		})
		for i := range 6 {
			x := s.must(t, b, order{key: fmt.Sprint(slug, i), flow: slug})
			if x.Status != execution.Succeeded {
				t.Fatalf("%+v", x)
			}
			tr, err := s.Trace(t.Context(), b.project, x.ID)
			if err != nil || string(tr.Calls[0].Request) != fmt.Sprintf(`{"omitted_bytes":%d}`, len(large)+2) || string(tr.Calls[0].Response) != `"short"` {
				t.Fatalf("%.100s %.100s %v", tr.Calls[0].Request, tr.Calls[0].Response, err)
			}
		}
		// A page ends before its limit, and the next one goes on.
		seen, before := 0, ""
		for more := true; more; {
			var list []execution.Execution
			if list, more, err = s.List(t.Context(), execution.ListQuery{ProjectID: b.project, Flow: slug, Before: before, Limit: 6}); err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 || len(list) > 5 {
				t.Fatalf("a page of %d", len(list))
			}
			seen, before = seen+len(list), list[len(list)-1].ID
		}
		if seen != 6 {
			t.Errorf("%d of 6 were listed", seen)
		}
		// Outputs of steps that call nobody are written as they come, and are
		// not without end.
		b.publish(t, "many", "steps: [{id: p, type: parallel, over: \"${1..100}\", concurrency: 2, steps: [{id: a, type: transform, value: \"${input.t}\"}]}]\n")
		x := s.must(t, b, order{key: "many", flow: "many", input: string(text)})
		if x.Status != execution.Failed || x.Failure.Code != api.CodeStepFailed || !strings.Contains(x.Failure.Message, "MiB") {
			t.Errorf("%s %v", x.Status, x.Failure)
		}
		if n := b.count(t, `execution_steps WHERE step = 'a' AND type = 'transform' AND state = 'finished'`); n < 5 || n > 19 {
			t.Errorf("%d outputs of 900 KiB are kept", n)
		}
		b.settled(t)
	})
}
