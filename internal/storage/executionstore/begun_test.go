package executionstore_test

import (
	"testing"

	"github.com/actionpulse/actionpulse/internal/execution"
)

// A run has its price once a step has begun, or when it has succeeded without
// one; a run that fails before that costs nothing.
func TestPriceOfARunThatHardlyBegan(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		s := b.serve(t, 4)
		b.topup(t, "ada", "10")
		const price = "\nprice: {per_run: \"2\"}\n"
		for slug, one := range map[string]struct {
			yaml, charged string
			status        execution.Status
		}{
			"skipped": {`steps: [{id: a, type: http, if: "${false}"}]`, "2", execution.Succeeded},
			"nothing": {`steps: [{id: a, type: http, if: "${input.nothing}"}]`, "2", execution.Succeeded},
			"unclear": {`steps: [{id: a, type: http, if: "${input.text}"}]`, "0", execution.Failed},
			"pure":    {`steps: [{id: a, type: transform, value: "${input.text + 1}"}]`, "2", execution.Failed},
		} {
			b.publish(t, slug, one.yaml+price)
			x := s.must(t, b, order{key: slug, flow: slug, customer: "ada", input: `{"text": "yes"}`})
			if x.Status != one.status || x.Charged.String() != one.charged {
				t.Errorf("%s: %s, charged %s, %v", slug, x.Status, x.Charged, x.Failure)
			}
		}
		if b.callee.total() != 0 {
			t.Errorf("%d calls", b.callee.total())
		}
		b.settled(t)
	})
}
