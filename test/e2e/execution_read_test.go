package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// TestExecutionLists: filters, pages, and what is not there.
func TestExecutionLists(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		helloSite(t, r, chat("echo", "echo-1", paid))
		c.publish(t, 201, "fails", chat("echo", "echo-fail", ""))
		for i := range 5 {
			mustExecute(t, r, 200, fmt.Sprint("ok ", i), hello)
		}
		failed(t, execute(t, r, "bad", `{"flow":"fails","input":{"text":"x"}}`), 502, "model_error")
		for filter, want := range map[string]int{
			"": 6, "flow=hello": 5, "flow=fails": 1, "flow=none": 0, "customer=ada": 5, "customer=bob": 0, "status=failed": 1, "status=succeeded": 5,
			"status=queued": 0, "idempotency_key=ok%203": 1, "idempotency_key=none": 0, "flow=hello&status=failed": 0, "flow=%00": 0,
			"customer=ada&status=succeeded&flow=hello": 5,
		} {
			if got := c.must(t, 200, "GET", "/v1/executions?"+filter, "").items(t); len(got) != want {
				t.Errorf("%s: %d, want %d", filter, len(got), want)
			}
		}
		seen, path := []string{}, "/v1/executions?limit=4&flow=hello"
		for path != "" {
			s := c.must(t, 200, "GET", path, "")
			for _, x := range s.items(t) {
				seen = append(seen, fmt.Sprint(x["idempotency_key"]))
			}
			path = ""
			if next, ok := s.body["next_cursor"].(string); ok {
				path = "/v1/executions?limit=4&flow=hello&cursor=" + next
				mustExecute(t, r, 200, fmt.Sprint("later ", len(seen)), hello) // moves no page
			}
		}
		if fmt.Sprint(seen) != "[ok 4 ok 3 ok 2 ok 1 ok 0]" {
			t.Errorf("%v", seen)
		}
		for _, query := range []string{"status=done", "cursor=!", "limit=0", "limit=201", "flow=a&flow=b"} {
			c.refused(t, "validation_failed", "GET", "/v1/executions?"+query, "")
		}
		for _, id := range []string{nowhere, "x", "%00"} {
			c.refused(t, "not_found", "GET", "/v1/executions/"+id, "")
			c.refused(t, "not_found", "GET", "/v1/executions/"+id+"/trace", "")
		}
		elsewhere := caller{r, owner(r).must(t, 201, "POST", "/api/v1/projects/"+
			owner(r).must(t, 201, "POST", "/api/v1/projects", `{"name":"Other"}`).text(t, "id")+"/project-keys", `{"name":"k"}`).text(t, "token")}
		id := fmt.Sprint(executions(t, r)[0]["id"])
		elsewhere.refused(t, "not_found", "GET", "/v1/executions/"+id, "")
		elsewhere.refused(t, "not_found", "GET", "/v1/executions/"+id+"/trace", "")
		elsewhere.refused(t, "not_found", "GET", "/v1/executions/"+id+"/events", "")
		elsewhere.refused(t, "not_found", "POST", "/v1/executions/"+id+"/cancel", "")
		for _, path := range []string{"/v1/executions", "/v1/operations", "/v1/operations?execution_id=" + id, "/v1/operations/costs"} {
			if n := len(elsewhere.must(t, 200, "GET", path, "").items(t)); n != 0 {
				t.Errorf("%s: %d of another project", path, n)
			}
		}
	})
}

// tokens are prices for the usage that the callee tells of: 1,000 in, of which
// 400 cached, and 100 out, which come to 0.6 + 0.1 + 0.2.
const tokens = `,"price":{"per_run":"2","per_step":{"say":"0.5"},"tokens":{"gpt-x":{"input":"1","cached":"0.25","output":"2"}}},"limits":{"budget":"10"}`

// TestTrace: what was done is a tree, with what was sent and what it cost.
func TestTrace(t *testing.T) {
	t.Parallel()
	withCallee(t, false, func(t *testing.T, r *apptest.Running, c *callee) {
		helloSite(t, r, fmt.Sprintf(`{"trace":{"redact":["input.email"]},"steps":[
			{"id":"each","type":"parallel","over":"${[1,2]}","output":"${steps.say.text}","steps":[
				{"id":"say","type":"model","provider":"local","model":"gpt-x","messages":[{"role":"user","content":"${input.email} ${string(item)}"}]},
				{"id":"never","type":"transform","if":"${false}","value":1}]},
			{"id":"fetch","type":"http","method":"POST","url":"%s/x","body":{"of":"${input.email}"}}],
			"output":"${steps.each.output}"%s}`, c.URL, tokens))
		x := mustExecute(t, r, 200, "one", `{"flow":"hello","customer":"ada","input":{"email":"ada@example.com"}}`)
		if fmt.Sprint(x["output"]) != "[ada@example.com 1 ada@example.com 2]" || x["charged"] != "4.8" {
			t.Errorf("%v", x)
		}
		if u := part(t, x, "usage"); u["input_tokens"] != 2000.0 || u["cached_tokens"] != 800.0 || u["output_tokens"] != 200.0 {
			t.Errorf("%v", u)
		}
		s := asProject(r).must(t, 200, "GET", fmt.Sprint("/v1/executions/", x["id"], "/trace"), "")
		var trace struct {
			Steps []traced `json:"steps"`
		}
		if err := json.Unmarshal([]byte(s.raw), &trace); err != nil || len(trace.Steps) != 2 {
			t.Fatalf("%v %s", err, s.raw)
		}
		each, fetch := trace.Steps[0], trace.Steps[1]
		if each.Step != "each" || each.Status != "finished" || len(each.Steps) != 4 || fetch.Step != "fetch" || len(fetch.Calls) != 1 {
			t.Fatalf("%s", s.raw)
		}
		keys := iterations(t, each)
		keys[fetch.Calls[0].DerivedKey] = true
		for _, sent := range c.calls() {
			if !keys[sent] {
				t.Errorf("%s was sent and is not in the trace: %v", sent, keys)
			}
		}
		if len(keys) != 3 || len(c.calls()) != 3 || !keys[fmt.Sprint(x["id"], ":say:1")] || !keys[fmt.Sprint(x["id"], ":fetch")] {
			t.Errorf("%v", keys)
		}
		steps, _ := json.Marshal(trace.Steps) // it was just read
		if strings.Contains(string(steps), "ada@example.com") || !strings.Contains(c.bodies(), "ada@example.com") || strings.Contains(s.raw, "sk-secret") {
			t.Errorf("%s", s.raw)
		}
	})
}

// iterations looks at the steps within the two iterations of TestTrace, and
// returns the derived keys of their calls.
func iterations(t *testing.T, each traced) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	for i, name := range []string{"say 0", "never 0", "say 1", "never 1"} {
		one := each.Steps[i]
		if one.Step+" "+one.Iteration != name {
			t.Fatalf("%d is %s %s, not %s", i, one.Step, one.Iteration, name)
		}
		if one.Step == "never" {
			if one.Status != "skipped" || len(one.Calls) != 0 || one.Price != "0" {
				t.Errorf("%+v", one)
			}
			continue
		}
		call := one.Calls[0]
		if call.Model != "gpt-x" || call.Provider != "local" || call.Price != "0.9" || call.Attempt != 1 || call.HTTPStatus != 200 || one.Price != "0.5" ||
			call.Usage["cached_tokens"] != 400 || call.ProviderRequestID != "callee-1" || call.LatencyMS == nil || call.Status != "succeeded" {
			t.Errorf("%+v", call)
		}
		keys[call.DerivedKey] = true
	}
	return keys
}

// traced is a step of a trace.
type traced struct {
	Step, Iteration, Status, Price string
	Output                         json.RawMessage
	Steps                          []traced
	Calls                          []struct {
		Model, Provider, Price, Status string
		Attempt                        int
		HTTPStatus                     int    `json:"http_status"`
		DerivedKey                     string `json:"derived_key"`
		ProviderRequestID              string `json:"provider_request_id"`
		LatencyMS                      *int64 `json:"latency_ms"`
		Usage                          map[string]int64
		Request, Response              json.RawMessage
	}
}

// TestOperationsAndCosts: the request that ran a flow and the calls of models
// it made, and what they come to.
func TestOperationsAndCosts(t *testing.T) {
	t.Parallel()
	withCallee(t, false, func(t *testing.T, r *apptest.Running, c *callee) {
		p := asProject(r)
		helloSite(t, r, chat("local", "gpt-x", tokens))
		x := mustExecute(t, r, 200, "one", hello)
		other := mustExecute(t, r, 200, "two", hello)
		of := p.must(t, 200, "GET", fmt.Sprint("/v1/operations?execution_id=", x["id"]), "").items(t)
		if len(of) != 2 || of[0]["type"] != "model" || of[1]["type"] != "execute" {
			t.Fatalf("%v", of)
		}
		if call := of[0]; call["step"] != "say" || call["model"] != "gpt-x" || call["charged"] != "0.9" || call["attempt"] != 1.0 || call["execution_id"] != x["id"] || call["status"] != "succeeded" {
			t.Errorf("%v", call)
		}
		if run := of[1]; run["id"] != x["id"] || run["charged"] != "3.4" || run["model"] != nil || run["step"] != nil || part(t, run, "usage")["input_tokens"] != 1000.0 {
			t.Errorf("%v", run)
		}
		var seen []any
		for path := "/v1/operations?limit=1"; path != ""; {
			s := p.must(t, 200, "GET", path, "")
			for _, one := range s.items(t) {
				seen = append(seen, one["id"])
			}
			path = ""
			if next, ok := s.body["next_cursor"].(string); ok {
				path = "/v1/operations?limit=1&cursor=" + next
			}
		}
		if len(seen) != 4 || seen[1] != other["id"] || seen[3] != x["id"] {
			t.Errorf("%v", seen)
		}
		if n := len(p.must(t, 200, "GET", "/v1/operations?execution_id=x", "").items(t)); n != 0 {
			t.Errorf("%d", n)
		}
		wantCosts(t, p)
		if len(c.calls()) != 2 {
			t.Errorf("%v", c.calls())
		}
	})
}

// wantCosts: two runs of 3.4, of which the calls are 0.9 each.
func wantCosts(t *testing.T, p caller) {
	t.Helper()
	today := time.Now().UTC().Format(time.DateOnly)
	for by, want := range map[string]string{
		"": `"credit_type":"main","executions":2`, "customer": `"customer":"ada","executions":2`, "flow": `"flow":"hello","executions":2`,
		"day": `"day":"` + today + `"`, "model": `"model":"gpt-x","executions":2,"calls":2`, "customer,flow,model,day": `"customer":"ada","flow":"hello","model":"gpt-x"`,
	} {
		s := p.must(t, 200, "GET", "/v1/operations/costs?by="+by, "")
		charged := "6.8"
		if strings.Contains(by, "model") {
			charged = "1.8"
		}
		if items := s.items(t); len(items) != 1 || items[0]["charged"] != charged || !strings.Contains(s.raw, want) || part(t, items[0], "usage")["cached_tokens"] != 800.0 {
			t.Errorf("%s: %s", by, s.raw)
		}
	}
	if n := len(p.must(t, 200, "GET", "/v1/operations/costs?from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z", "").items(t)); n != 0 {
		t.Errorf("%d", n)
	}
	for _, query := range []string{"by=year", "by=model,", "from=x", "to=yesterday"} {
		p.refused(t, "validation_failed", "GET", "/v1/operations/costs?"+query, "")
	}
}

// TestTheHoldOfAnExecution: it is shown, and nobody else ends it; what it paid
// for is named by the movement.
func TestTheHoldOfAnExecution(t *testing.T) {
	t.Parallel()
	withCallee(t, true, func(t *testing.T, r *apptest.Running, c *callee) {
		p := asProject(r)
		helloSite(t, r, chat("local", "gpt-x", tokens))
		x := mustExecute(t, r, 202, "one", hello, "Prefer", "wait=0")
		c.next(t)
		wantBalance(t, r, "100", "12.5")
		held := p.must(t, 200, "GET", "/v1/customers/ada/holds?state=open", "").items(t)
		if len(held) != 1 || held[0]["id"] != x["id"] || held[0]["amount"] != "12.5" || held[0]["expires_at"] != nil {
			t.Fatalf("%v", held)
		}
		at := fmt.Sprint("/v1/customers/ada/holds/", x["id"])
		for _, end := range []string{"/capture", "/release"} {
			if s := p.refused(t, "conflict", http.MethodPost, at+end, ""); s.status != 409 || s.detail("execution_id") != x["id"] {
				t.Errorf("%s: %d %s", end, s.status, s.raw)
			}
		}
		wantBalance(t, r, "100", "12.5")
		close(c.gate)
		mustExecute(t, r, 200, "one", hello)
		wantBalance(t, r, "96.6", "0")
		all := p.must(t, 200, "GET", "/v1/movements?kind=capture", "").items(t)
		if len(all) != 1 || all[0]["execution_id"] != x["id"] || all[0]["amount"] != "3.4" {
			t.Errorf("%v", all)
		}
		for _, end := range []string{"/capture", "/release"} {
			if s := p.refused(t, "conflict", http.MethodPost, at+end, ""); s.detail("execution_id") != x["id"] {
				t.Errorf("%s: %s", end, s.raw)
			}
		}
		wantMovements(t, r, "ada", "topup 100", "capture -3.4")
	})
}
