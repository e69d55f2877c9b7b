package executionstore_test

import (
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/transform"
	"github.com/actionpulse/actionpulse/internal/storage/flowstore"
)

// An execution whose definition this program cannot compile, because another
// one has published it, ends and lets go of its hold; it is in nobody's way.
func TestDefinitionThatCannotBeCompiledAnyMore(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.topup(t, "ada", "10")
		b.publish(t, "old", "steps: [{id: a, type: http}]\nprice: {per_run: \"2\"}\n")
		b.publish(t, "new", "steps: [{id: a, type: transform, value: 1}]\nprice: {per_run: \"2\"}\n")
		idle := b.serve(t, 0)
		old := idle.must(t, b, order{key: "old", flow: "old", customer: "ada", mode: execution.Async})
		later := idle.must(t, b, order{key: "new", flow: "new", customer: "ada", mode: execution.Async})
		if got := b.balance(t, "ada"); got != "10 held 4" {
			t.Fatal(got)
		}
		idle.stop()
		s := b.serve(t, 1, func(p *execution.Params) {
			p.Flows = flow.NewService(flow.Params{
				Store: flowstore.New(b.db), Guard: func() error { return nil }, Clock: time.Now, Types: []step.Type{transform.Type{}},
			})
		})
		if x := s.ended(t, b, old.ID); x.Status != execution.Failed || x.Failure.Code != api.CodeStepFailed || x.Charged != 0 {
			t.Errorf("%+v", x)
		}
		if tr, err := s.Trace(t.Context(), b.project, old.ID); err != nil || tr.Execution.ID != old.ID || len(tr.Roots()) != 0 {
			t.Errorf("%+v %v", tr, err)
		}
		if x := s.ended(t, b, later.ID); x.Status != execution.Succeeded {
			t.Errorf("%+v", x)
		}
		if got := b.balance(t, "ada"); got != "8 held 0" {
			t.Error(got)
		}
		b.settled(t)
	})
}
