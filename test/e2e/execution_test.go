package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// chat is a definition of one step that asks a model; more are further members.
func chat(provider, model, more string) string {
	return fmt.Sprintf(`{"input":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}},`+
		`"steps":[{"id":"say","type":"model","provider":%q,"model":%q,"messages":[{"role":"user","content":"${input.text}"}]}],`+
		`"output":"${steps.say.text}"%s}`, provider, model, more)
}

// paid is what a run costs.
const paid = `,"price":{"per_run":"2"}`

// execute sends a request to run a flow; headers are names and values.
func execute(t *testing.T, r *apptest.Running, key, body string, headers ...string) said {
	t.Helper()
	request := requestOf(t, asProject(r), "POST", "/v1/operations/execute", body)
	request.Header.Set("Idempotency-Key", key)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return sendRequest(t, request)
}

// hello runs the flow hello for ada.
const hello = `{"flow":"hello","customer":"ada","input":{"text":"hi"}}`

// mustExecute demands a status and returns the execution.
func mustExecute(t *testing.T, r *apptest.Running, status int, key, body string, headers ...string) map[string]any {
	t.Helper()
	s := execute(t, r, key, body, headers...)
	if s.status != status {
		t.Fatalf("%s: %d %s, want %d", key, s.status, s.raw, status)
	}
	return part(t, s.body, "execution")
}

// refusedExecution demands a refusal, what is said of the key, and that nobody
// is asked to repeat.
func refusedExecution(t *testing.T, s said, status int, code, key string) said {
	t.Helper()
	if s.status != status || s.code() != code || s.detail("key") != key || s.header.Get("X-Should-Retry") != "false" || s.detail("retryable") != false {
		t.Errorf("%d %v %s, want %d %s, key %s", s.status, s.header, s.raw, status, code, key)
	}
	return s
}

// failed demands an execution that has failed, and returns its id.
func failed(t *testing.T, s said, status int, code string) string {
	t.Helper()
	id, _ := refusedExecution(t, s, status, code, "taken").detail("execution_id").(string)
	if id == "" {
		t.Errorf("no execution: %s", s.raw)
	}
	return id
}

// executions are all of the project, at most 200.
func executions(t *testing.T, r *apptest.Running) []map[string]any {
	t.Helper()
	return asProject(r).must(t, 200, "GET", "/v1/executions?limit=200", "").items(t)
}

// executionOf reads an execution.
func executionOf(t *testing.T, r *apptest.Running, id any) map[string]any {
	t.Helper()
	return part(t, asProject(r).must(t, 200, "GET", fmt.Sprint("/v1/executions/", id), "").body, "execution")
}

// TestExecute: the table of the contract for first requests and repeats.
func TestExecute(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		refusedExecution(t, execute(t, r, "k1", hello), 404, "flow_not_found", "free")
		c.publish(t, 201, "hello", chat("echo", "echo-1", paid))
		refusedExecution(t, execute(t, r, "k1", hello), 404, "customer_not_found", "free")
		of("topup", "ada", "t", "1").must(t, r)
		s := refusedExecution(t, execute(t, r, "k1", hello), 402, "insufficient_credits", "free")
		if b, _ := s.detail("balance").(map[string]any); b["available"] != "1" {
			t.Errorf("%s", s.raw)
		}
		of("topup", "ada", "t2", "9").must(t, r)
		if n := len(executions(t, r)); n != 0 {
			t.Errorf("%d executions came of refusals", n)
		}
		first := mustExecute(t, r, 200, "k1", hello)
		if first["status"] != "succeeded" || first["output"] != "hi" || first["charged"] != "2" || first["version"] != 1.0 || first["error"] != nil ||
			first["customer"] != "ada" || first["idempotency_key"] != "k1" || first["started_at"] == nil || first["finished_at"] == nil {
			t.Errorf("%v", first)
		}
		if u := part(t, first, "usage"); u["input_tokens"] != 1.0 || u["output_tokens"] != 1.0 || u["cached_tokens"] != 0.0 {
			t.Errorf("%v", u)
		}
		for range 3 {
			again := execute(t, r, "k1", hello)
			if x := part(t, again.body, "execution"); again.status != 200 || !again.replayed || fmt.Sprint(x) != fmt.Sprint(first) || again.header.Get("Retry-After") != "" {
				t.Errorf("%d %s", again.status, again.raw)
			}
		}
		mustExecute(t, r, 200, "k2", hello)
		wantMovements(t, r, "ada", "topup 1", "topup 9", "capture -2", "capture -2")
		wantBalance(t, r, "6", "0")
		if n := len(executions(t, r)); n != 2 {
			t.Errorf("%d executions", n)
		}
	})
}

// TestExecuteRefusals: what is refused for its body leaves the key free and
// nothing behind.
func TestExecuteRefusals(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		c.publish(t, 201, "hello", chat("echo", "echo-1", paid))
		c.publish(t, 201, "free", flowText("x"))
		for body, field := range map[string]string{
			`{}`: "flow", `{"flow":"free"}`: "input", `{"flow":"free","input":null}`: "input", `{"flow":"free","input":[]}`: "input",
			`{"flow":"free","input":"x"}`: "input", `{"flow":"","input":{}}`: "flow", `{"flow":1,"input":{}}`: "flow",
			`{"flow":"free","input":{},"version":0}`: "version", `{"flow":"free","input":{},"version":1.5}`: "version",
			`{"flow":"free","input":{},"version":"1"}`: "version", `{"flow":"free","input":{},"context":[]}`: "context",
			`{"flow":"free","input":{},"execution_mode":"later"}`: "execution_mode", `{"flow":"free","input":{},"customer":""}`: "customer",
			`{"flow":"free","input":{},"customer":"a\u0000"}`: "customer", `{"flow":"free","input":{},"customer":".."}`: "customer",
			`{"flow":"free","input":{},"inputs":{}}`: "inputs", `{"flow":"free","input":{},"idempotency_key":"k"}`: "idempotency_key",
			`{"flow":"hello","input":{"text":"hi"}}`: "customer",
		} {
			if s := refusedExecution(t, execute(t, r, "k", body), 422, "invalid_request", "free"); s.detail("field") != field {
				t.Errorf("%s: %s", body, s.raw)
			}
		}
		deep := `{"flow":"free","input":{"x":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}}`
		for _, body := range []string{``, `{`, `[`, `{"flow":"free","flow":"free","input":{}}`, `{"flow":"free","input":{"a":1,"a":2}}`, "{\"flow\":\"\xff\",\"input\":{}}", deep} {
			refusedExecution(t, execute(t, r, "k", body), 400, "invalid_json", "free")
		}
		refusedExecution(t, execute(t, r, "k", `{"flow":"free","version":2,"input":{}}`), 404, "flow_not_found", "free")
		refusedExecution(t, execute(t, r, "k", `{"flow":"Free","input":{}}`), 404, "flow_not_found", "free")
		refusedExecution(t, execute(t, r, "k", `{"flow":"free","customer":"nobody","input":{}}`), 404, "customer_not_found", "free")
		if s := execute(t, r, "k", `{"flow":"free","input":{},"pad":"`+strings.Repeat("x", 1<<20)+`"}`); s.status != 413 || s.detail("limit_bytes") != float64(1<<20) {
			t.Errorf("%d %s", s.status, s.raw)
		}
		if s := execute(t, r, "k", `{"flow":"free","input":{}}`, "Content-Type", "text/html"); s.status != 415 {
			t.Errorf("%d %s", s.status, s.raw)
		}
		if n := len(executions(t, r)); n != 0 {
			t.Errorf("%d executions", n)
		}
		c.refused(t, "not_found", "GET", "/v1/idempotency-keys?key=k", "")
		mustExecute(t, r, 200, "k", `{"flow":"free","input":{}}`)
	})
}

// TestValuesComeBack: numbers and texts of an input are what they were, however
// large, and a body may be as large as is promised.
func TestValuesComeBack(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		asProject(r).publish(t, 201, "same", `{"steps":[{"id":"shape","type":"transform","value":{"in":"${input}","given":"${context}"}}],"output":"${steps.shape.output}"}`)
		const in = `{"big":9223372036854775807,"exact":9007199254740993,"small":0.1,"list":[1,null,true,"é\u2028<>&"],"none":null}`
		s := execute(t, r, "k", `{"flow":"same","input":`+in+`,"context":{"n":9007199254740993}}`)
		for _, want := range []string{`"big":9223372036854775807`, `"exact":9007199254740993`, `"n":9007199254740993`, `0.1`, `"none":null`} {
			if s.status != 200 || !strings.Contains(s.raw, want) {
				t.Errorf("%s is missing: %d %s", want, s.status, s.raw)
			}
		}
		if text := part(t, s.body, "execution", "output", "in")["list"]; fmt.Sprint(text) != "[1 <nil> true é\u2028<>&]" {
			t.Errorf("%v", text)
		}
		deep := `{"flow":"same","input":{"x":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}}`
		mustExecute(t, r, 200, "deep", deep)
		head, tail := `{"flow":"same","input":{"pad":"`, `"}}`
		pad := strings.Repeat("x", 1<<20-len(head)-len(tail))
		x := mustExecute(t, r, 200, "large", head+pad+tail)
		if got := part(t, x, "output", "in")["pad"]; got != pad {
			t.Error("a large text did not come back")
		}
	})
}
