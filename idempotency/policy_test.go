package idempotency_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/idempotency"
)

// answers are status and code of each refusal.
type answers struct{ Missing, Malformed, Conflict, Running string }

func answersOf(p idempotency.Policy) answers {
	say := func(r idempotency.Refusal) string { return http.StatusText(r.Status) + " " + r.Code }
	return answers{say(p.Refusals.Missing), say(p.Refusals.Malformed), say(p.Refusals.Conflict), say(p.Refusals.Running)}
}

func checkPolicy(t *testing.T, p idempotency.Policy, want answers) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, answersOf(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !p.Key.Required {
		t.Error("the key is not required")
	}
}

// CONTRACT.md §4: one answer for every bad key; the same marker with 200; keys
// do not expire; an error leaves the key free.
func TestReleaseMarker(t *testing.T) {
	p := idempotency.ReleaseMarker()
	checkPolicy(t, p, answers{
		"Unprocessable Entity validation_failed", "Unprocessable Entity validation_failed", "Conflict validation_failed",
		"Conflict conflict",
	})
	if p.Takes != idempotency.OnSuccess || p.Repeat != idempotency.CurrentResource || p.ReplayStatus != 200 {
		t.Errorf("takes %d, repeats %d with %d", p.Takes, p.Repeat, p.ReplayStatus)
	}
	if diff := cmp.Diff(idempotency.Retention{}, p.Retention); diff != "" {
		t.Errorf("something expires: %s", diff)
	}
}

// CONTRACT.md §5: only a success takes the key; the first answer byte for byte
// while it is kept, the facts for ever.
func TestCreditMovement(t *testing.T) {
	p := idempotency.CreditMovement(24 * time.Hour)
	checkPolicy(t, p, answers{
		"Bad Request idempotency_key_required", "Unprocessable Entity invalid_request", "Conflict idempotency_conflict",
		"Conflict idempotency_conflict",
	})
	if p.Takes != idempotency.OnSuccess || p.Repeat != idempotency.FirstAnswer || p.ReplayStatus != 0 {
		t.Errorf("takes %d, repeats %d with %d", p.Takes, p.Repeat, p.ReplayStatus)
	}
	if p.Retention.Answer != 24*time.Hour || p.Retention.Key != 0 || p.Retention.Tombstone == nil {
		t.Errorf("keeps %+v", p.Retention)
	}
	if p.Refusals.Conflict.Message != "The Idempotency-Key was already used with a different request body" {
		t.Errorf("the message of a conflict is fixed, and is %q", p.Refusals.Conflict.Message)
	}
}

// CONTRACT.md §5: the existence of an execution takes the key; a repeat reads
// it with 200; bodies are compared byte by byte for ever.
func TestExecution(t *testing.T) {
	p := idempotency.Execution()
	checkPolicy(t, p, answersOf(idempotency.CreditMovement(0)))
	if p.Takes != idempotency.OnResource || p.Repeat != idempotency.CurrentResource || p.ReplayStatus != 200 {
		t.Errorf("takes %d, repeats %d with %d", p.Takes, p.Repeat, p.ReplayStatus)
	}
	if diff := cmp.Diff(idempotency.Retention{}, p.Retention); diff != "" {
		t.Errorf("something expires: %s", diff)
	}
	if got := p.Compare.Print(&idempotency.Request{Body: []byte(`{"a":1}`)}).Differs(printOf(raw, `{"a": 1}`)); len(got) != 1 {
		t.Errorf("bodies are not compared byte by byte: %q", got)
	}
}

// All keyed work shares its keys; markers do not share theirs with it.
func TestNamespaces(t *testing.T) {
	work, execution := idempotency.CreditMovement(0), idempotency.Execution()
	if work.Namespace != execution.Namespace {
		t.Error("a key of a movement can be used for an execution")
	}
	if diff := cmp.Diff(work.Key, execution.Key); diff != "" {
		t.Error(diff)
	}
	seen := map[string]bool{}
	for _, p := range []idempotency.Policy{work, idempotency.ReleaseMarker(), idempotency.IETF(0)} {
		if seen[p.Namespace] {
			t.Errorf("%s is shared", p.Namespace)
		}
		seen[p.Namespace] = true
	}
}

// The draft: 400 without a key, 422 for another payload, 409 while it runs.
func TestIETF(t *testing.T) {
	p := idempotency.IETF(time.Hour)
	checkPolicy(t, p, answers{
		"Bad Request idempotency_key_missing", "Bad Request idempotency_key_malformed",
		"Unprocessable Entity idempotency_key_reused", "Conflict idempotency_key_in_use",
	})
	if p.Takes != idempotency.OnAnswer || p.Repeat != idempotency.FirstAnswer || p.ReplayStatus != 0 || !p.Key.Quoted {
		t.Errorf("takes %d, repeats %d with %d", p.Takes, p.Repeat, p.ReplayStatus)
	}
	if p.Retention.Answer != time.Hour || p.Retention.Key != time.Hour {
		t.Errorf("keeps %+v", p.Retention)
	}
}

func TestPoliciesThatMakeNoSense(t *testing.T) {
	tests := map[string]func(*idempotency.Policy){
		"no namespace":                    func(p *idempotency.Policy) { p.Namespace = "" },
		"a namespace of 65 bytes":         func(p *idempotency.Policy) { p.Namespace = strings.Repeat("n", 65) },
		"nothing is compared":             func(p *idempotency.Policy) { p.Compare = nil },
		"the key is forgotten too early":  func(p *idempotency.Policy) { p.Retention.Key = p.Retention.Answer - 1 },
		"longer keys than a store keeps":  func(p *idempotency.Policy) { p.Key.MaxLength = 256 },
		"cookies are kept":                func(p *idempotency.Policy) { p.KeepHeaders = []string{"set-cookie"} },
		"a refusal without a status":      func(p *idempotency.Policy) { p.Refusals.Running = idempotency.Refusal{} },
		"a refusal that looks like a yes": func(p *idempotency.Policy) { p.Refusals.Missing.Status = 200 },
	}
	for name, damage := range tests {
		p := idempotency.IETF(time.Hour)
		damage(&p)
		if p.Validate() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
