package retry_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/actionpulse/actionpulse/retry"
)

// row is a row of the published table as an answer, and how often a mutation, a
// read, an event and keyed work are sent if it is given once, before a success.
type row struct {
	name  string
	reply reply
	want  [4]int
}

var (
	always   = [4]int{2, 2, 2, 2}
	never    = [4]int{1, 1, 1, 1}
	repeated = [4]int{1, 2, 2, 2}
)

// rows are those of the contract, each code of each row.
var rows = []row{
	{"no answer", reply{err: io.ErrUnexpectedEOF}, repeated},
	{"proxy 500", reply{status: 500}, repeated},
	{"proxy 502", reply{status: 502}, repeated},
	{"proxy 503", reply{status: 503}, repeated},
	{"proxy 504", reply{status: 504}, repeated},
	{"408", reply{status: 408, code: "request_timeout"}, always},
	{"504 query", reply{status: 504, code: "query_timeout", header: should("false")}, never},
	{"429 rate", reply{status: 429, code: "rate_limited", header: map[string]string{"Retry-After": "1"}}, always},
	{"429 proxy", reply{status: 429}, always},
	{"429 quota", reply{status: 429, code: "quota_exceeded"}, never},
	{"429 trial", reply{status: 429, code: "trial_quota_exceeded"}, never},
	{"500", reply{status: 500, code: "internal"}, repeated},
	{"503", reply{status: 503, code: "unavailable"}, repeated},
	{"503 unknown", reply{status: 503, code: "unavailable", details: `"applied":"unknown"`}, repeated},
	{"503 applied", reply{status: 503, code: "unavailable", details: `"applied":true`}, repeated},
	{"503 applied, contradicted", reply{status: 503, code: "unavailable", details: `"applied":true`, header: should("true")}, repeated},
	{"503 not applied", reply{status: 503, code: "unavailable", details: `"applied":false`}, always},
	{"503 not applied, said", reply{status: 503, code: "unavailable", details: `"applied":false`, header: should("true")}, always},
	{"503 forbidden", reply{status: 503, code: "unavailable", details: `"applied":false`, header: should("false")}, never},
	{"409 privacy", reply{status: 409, code: "privacy_job_active"}, always},
	{"409", reply{status: 409, code: "conflict"}, never},
	{"409 key", reply{status: 409, code: "idempotency_conflict", details: `"retryable":false`}, never},
	{"409 retryable", reply{status: 409, code: "of_the_future", details: `"retryable":true`}, always},
	{"400", reply{status: 400, code: "invalid_json"}, never},
	{"400 key", reply{status: 400, code: "idempotency_key_required"}, never},
	{"401", reply{status: 401, code: "unauthenticated"}, never},
	{"401 expired", reply{status: 401, code: "token_expired"}, never},
	{"402", reply{status: 402, code: "payment_required"}, never},
	{"402 credits", reply{status: 402, code: "insufficient_credits"}, never},
	{"403", reply{status: 403, code: "forbidden"}, never},
	{"404", reply{status: 404, code: "not_found"}, never},
	{"405", reply{status: 405, code: "method_not_allowed"}, never},
	{"413", reply{status: 413, code: "payload_too_large"}, never},
	{"415", reply{status: 415, code: "unsupported_media_type"}, never},
	{"422", reply{status: 422, code: "validation_failed", header: should("true")}, never},
	{"execution 502", reply{status: 502, code: "model_error"}, never},
	{"execution unknown", reply{status: 502, code: "outcome_unknown"}, never},
	{"execution 504", reply{status: 504, code: "execution_timeout"}, never},
	{"501", reply{status: 501}, never},
	{"307", reply{status: 307, header: map[string]string{"Location": "/", "X-Should-Retry": "true"}}, never},
}

func should(retry string) map[string]string { return map[string]string{"X-Should-Retry": retry} }

func TestTransportTable(t *testing.T) {
	t.Parallel()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for kind, want := range c.want {
					checkRow(t, c.reply, retry.Kind(kind), want)
				}
			})
		})
	}
}

func checkRow(t *testing.T, r reply, kind retry.Kind, want int) {
	t.Helper()
	b := play(r, reply{status: 200, code: "ok"})
	g := do(&retry.Transport{Base: b, Policy: steady}, newRequest(t, kind, strings.NewReader("{}")))
	if len(b.sent) != want {
		t.Errorf("kind %d: sent %d times, want %d", kind, len(b.sent), want)
	}
	if r.err != nil && want == 1 {
		if e, ok := errors.AsType[*retry.Error](g.err); !ok || e.Attempts != 1 || e.Verdict.Retry || !errors.Is(g.err, r.err) {
			t.Errorf("kind %d: got %v", kind, g.err)
		}
		return
	}
	last := r
	if want == 2 {
		last = reply{status: 200, code: "ok"}
	}
	if g.err != nil || g.status != last.status || g.text != last.text() || g.attempts != want {
		t.Errorf("kind %d: got %+v", kind, g)
	}
}

// TestTransportApplied: what an answer says of the change reaches the outcome.
func TestTransportApplied(t *testing.T) {
	t.Parallel()
	for details, want := range map[string]retry.Applied{
		`"applied":true`: retry.AppliedTrue, `"applied":false`: retry.AppliedFalse, `"applied":"unknown"`: retry.AppliedUnknown,
		`"applied":7`: retry.AppliedUnsaid, `"retryable":true`: retry.AppliedUnsaid,
	} {
		synctest.Test(t, func(t *testing.T) {
			var said []retry.Applied
			policy := steady
			policy.OnRetry = func(r retry.Retry) { said = append(said, r.Outcome.Applied) }
			b := play(reply{status: 503, code: "unavailable", details: details}, reply{status: 200})
			if g := do(&retry.Transport{Base: b, Policy: policy}, newRequest(t, retry.Keyed, nil)); g.err != nil {
				t.Fatal(g.err)
			}
			if !slices.Equal(said, []retry.Applied{want}) {
				t.Errorf("%s: got %q", details, said)
			}
		})
	}
}
