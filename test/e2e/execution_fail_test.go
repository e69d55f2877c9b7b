package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// failure is a flow that fails when it is given the text "x".
type failure struct {
	slug, definition string
	status           int
	code             string
}

// failures are flows that fail, one for each code. url is where nobody answers.
func failures(url string) []failure {
	return []failure{
		{"input", `{"input":{"type":"object","required":["n"]},"steps":[]}`, 422, "invalid_flow_input"},
		{"model", chat("echo", "echo-fail", ""), 502, "model_error"},
		{"step", `{"steps":[{"id":"s","type":"transform","value":"${int(input.text)}"}]}`, 502, "step_failed"},
		{"slow", `{"steps":[{"id":"w","type":"wait","for":"1h"}],"limits":{"timeout":"50ms"}}`, 504, "execution_timeout"},
		{"lost", `{"steps":[{"id":"s","type":"http","method":"POST","url":"` + url + `"}]}`, 502, "outcome_unknown"},
	}
}

// hangsUp is a server that takes requests and answers none.
func hangsUp(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // it is all the same
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// failing runs the flow of [failures] with a code.
func failing(code string) cause {
	return func(t *testing.T, r *apptest.Running) refusal {
		for _, f := range failures(hangsUp(t)) {
			if f.code != code {
				continue
			}
			asProject(r).publish(t, 201, f.slug, f.definition)
			request := requestOf(t, asProject(r), http.MethodPost, "/v1/operations/execute", fmt.Sprintf(`{"flow":%q,"input":{"text":"x"}}`, f.slug))
			request.Header.Set("Idempotency-Key", "fails with "+code)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			refused := readRefusal(t, response)
			if details, _ := refused.error["details"].(map[string]any); details["key"] != "taken" || details["execution_id"] == nil {
				t.Errorf("%v", refused.error)
			}
			return refused
		}
		t.Fatalf("no flow fails with %s", code)
		return refusal{}
	}
}

// TestExecutionsThatFail: the first request hears the code, repeats read the
// execution, and the key is taken.
func TestExecutionsThatFail(t *testing.T) {
	t.Parallel()
	onBothEnginesWith(t, []string{private}, func(t *testing.T, r *apptest.Running) {
		for _, f := range failures(hangsUp(t)) {
			asProject(r).publish(t, 201, f.slug, f.definition)
			body := fmt.Sprintf(`{"flow":%q,"input":{"text":"x"}}`, f.slug)
			id := failed(t, execute(t, r, f.slug, body), f.status, f.code)
			for range 2 {
				again := execute(t, r, f.slug, body)
				x := part(t, again.body, "execution")
				if again.status != 200 || !again.replayed || x["id"] != id || x["status"] != "failed" || part(t, x, "error")["code"] != f.code ||
					x["output"] != nil || x["finished_at"] == nil || x["charged"] != "0" || again.header.Get("Retry-After") != "" {
					t.Errorf("%s: %d %s", f.slug, again.status, again.raw)
				}
			}
			key := asProject(r).must(t, 200, "GET", "/v1/idempotency-keys?key="+f.slug, "")
			if u := part(t, key.body, "unit"); u["status"] != "failed" || u["id"] != id {
				t.Errorf("%s", key.raw)
			}
			asProject(r).must(t, 200, "GET", "/v1/executions/"+id+"/trace", "")
		}
	})
}

// TestFailedStaysFailed: the flow is fixed, and the key reads as it did; a new
// one runs.
func TestFailedStaysFailed(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, `{"input":{"type":"object","required":["n"]},"steps":[{"id":"shape","type":"transform","value":1}],"output":"fixed","price":{"per_run":"2"}}`)
		id := failed(t, execute(t, r, "one", hello), 422, "invalid_flow_input")
		x := executionOf(t, r, id)
		if x["charged"] != "0" || x["started_at"] != nil {
			t.Errorf("%v", x)
		}
		asProject(r).publish(t, 201, "hello", `{"steps":[{"id":"shape","type":"transform","value":1}],"output":"fixed","price":{"per_run":"2"}}`)
		for range 3 {
			again := execute(t, r, "one", hello)
			x := part(t, again.body, "execution")
			if again.status != 200 || !again.replayed || x["id"] != id || x["status"] != "failed" || part(t, x, "error")["code"] != "invalid_flow_input" {
				t.Errorf("%d %s", again.status, again.raw)
			}
		}
		wantMovements(t, r, "ada", "topup 100")
		if x := mustExecute(t, r, 200, "two", hello); x["output"] != "fixed" || x["version"] != 2.0 {
			t.Errorf("%v", x)
		}
		wantMovements(t, r, "ada", "topup 100", "capture -2")
		wantBalance(t, r, "98", "0")
	})
}

// TestRefusedProvider: a provider refuses a hundred calls before their first
// byte. Every hold is settled, and nothing is charged: no token was used.
func TestRefusedProvider(t *testing.T) {
	t.Parallel()
	const many = 100
	withCallee(t, false, func(t *testing.T, r *apptest.Running, c *callee) {
		helloSite(t, r, chat("local", "gpt-x", `,"price":{"tokens":{"*":{"input":"1","output":"1"}}},"limits":{"budget":"1"}`))
		c.refuse(http.StatusUnauthorized)
		for _, s := range sideBySide(many, func(i int) said { return execute(t, r, fmt.Sprint("k", i), hello) }) {
			failed(t, s, 502, "model_error")
		}
		wantBalance(t, r, "100", "0")
		wantMovements(t, r, "ada", "topup 100")
		if n := len(c.calls()); n != many {
			t.Errorf("%d calls: what is refused for good is not repeated", n)
		}
		if open := asProject(r).must(t, 200, "GET", "/v1/customers/ada/holds?state=open", "").items(t); len(open) != 0 {
			t.Errorf("%v", open)
		}
	})
}

// TestTheClientLeaves: the run goes on to its end, and is charged once.
func TestTheClientLeaves(t *testing.T) {
	t.Parallel()
	withCallee(t, true, func(t *testing.T, r *apptest.Running, c *callee) {
		helloSite(t, r, chat("local", "gpt-x", paid))
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			request := requestOf(t, asProject(r), http.MethodPost, "/v1/operations/execute", hello).WithContext(ctx)
			request.Header.Set("Idempotency-Key", "one")
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = response.Body.Close() // it should not be there
			}
			left <- err
		}()
		c.next(t)
		wantBalance(t, r, "100", "2")
		leave()
		if <-left == nil {
			t.Fatal("it was answered before it ended")
		}
		if x := mustExecute(t, r, 200, "one", hello, "Prefer", "wait=0"); x["status"] != "running" {
			t.Errorf("%v", x)
		}
		close(c.gate)
		if x := mustExecute(t, r, 200, "one", hello); x["status"] != "succeeded" || x["output"] != "hi" {
			t.Errorf("%v", x)
		}
		wantBalance(t, r, "98", "0")
		wantMovements(t, r, "ada", "topup 100", "capture -2")
		if n := len(c.calls()); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestAProxyCuts: the answer takes longer than a proxy waits. Each repeat gets
// the run or its result; there is one run and one charge.
func TestAProxyCuts(t *testing.T) {
	t.Parallel()
	withCallee(t, true, func(t *testing.T, r *apptest.Running, c *callee) {
		helloSite(t, r, chat("local", "gpt-x", paid))
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		request := requestOf(t, asProject(r), http.MethodPost, "/v1/operations/execute", hello)
		request.Header.Set("Idempotency-Key", "one")
		if err := request.Write(conn); err != nil {
			t.Fatal(err)
		}
		c.next(t)
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		var id any
		for range 3 {
			x := mustExecute(t, r, 200, "one", hello, "Prefer", "wait=0")
			if x["status"] != "running" || id != nil && x["id"] != id {
				t.Errorf("%v", x)
			}
			id = x["id"]
		}
		close(c.gate)
		for range 3 {
			if x := mustExecute(t, r, 200, "one", hello); x["status"] != "succeeded" || x["id"] != id {
				t.Errorf("%v", x)
			}
		}
		wantMovements(t, r, "ada", "topup 100", "capture -2")
		if calls := c.calls(); len(calls) != 1 || calls[0] != fmt.Sprint(id, ":say") {
			t.Errorf("%v", calls)
		}
	})
}
