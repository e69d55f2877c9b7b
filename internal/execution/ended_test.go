package execution

import (
	"testing"

	"github.com/actionpulse/actionpulse/idempotency"
)

// TestForgottenWhileRead: what was read before all was forgotten may have been
// erased since, and is not remembered; what is read afterwards is.
func TestForgottenWhileRead(t *testing.T) {
	t.Parallel()
	e := newEnded()
	ref := (&idempotency.Request{Policy: &policy, Scope: "p", Key: "k"}).Ref()
	one := told{execution: Execution{Output: []byte(`"old"`)}}
	seen := e.forgotten.Load()
	e.forget()
	e.keep(ref, one, seen)
	if x, ok := e.find(ref, one.digest); ok {
		t.Errorf("%s came back", x.Output)
	}
	e.keep(ref, one, e.forgotten.Load())
	if _, ok := e.find(ref, one.digest); !ok {
		t.Error("it is not remembered")
	}
}
