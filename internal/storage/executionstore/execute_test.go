package executionstore_test

import (
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/fault"
)

const priced = `
steps:
  - {id: a, type: http, name: one}
  - {id: b, type: transform, value: "${steps.a.output}!"}
output: "${steps.b.output}"
price: {credit_type: main, per_run: "2", per_step: {a: "0.5"}}
`

func TestExecute(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		s := b.serve(t, 4)
		b.publish(t, "hello", priced)
		if _, err := s.execute(t, b, order{key: "k0", flow: "hello", customer: "ada"}); fault.CodeOf(err) != api.CodeCustomerNotFound {
			t.Fatal(err)
		}
		b.topup(t, "ada", "4")
		first, err := s.execute(t, b, order{key: "k1", flow: "hello", customer: "ada"})
		if err != nil || first.Replayed || first.Execution.Status != execution.Succeeded || string(first.Execution.Output) != `"one!"` {
			t.Fatalf("%+v %v", first, err)
		}
		again, err := s.execute(t, b, order{key: "k1", flow: "hello", customer: "ada"})
		if err != nil || !again.Replayed || again.Execution.ID != first.Execution.ID || again.Execution.Charged.String() != "2.5" {
			t.Fatalf("%+v %v", again, err)
		}
		if got := b.balance(t, "ada"); got != "1.5 held 0" {
			t.Error(got)
		}
		if _, err := s.execute(t, b, order{key: "k2", flow: "hello", customer: "ada"}); fault.CodeOf(err) != api.CodeInsufficientCredits {
			t.Fatal(err)
		}
		b.topup(t, "ada", "4")
		second, err := s.execute(t, b, order{key: "k2", flow: "hello", customer: "ada", mode: execution.Async})
		if err != nil || second.Execution.Status != execution.Queued {
			t.Fatalf("%+v %v", second, err)
		}
		if n := b.callee.total(); n > 2 {
			t.Errorf("%d calls", n)
		}
	})
}
