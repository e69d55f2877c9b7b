package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// async is hello without waiting.
const async = `{"flow":"hello","customer":"ada","input":{"text":"hi"},"execution_mode":"async"}`

// wantRetryAfter demands that an answer says when to ask again.
func wantRetryAfter(t *testing.T, s said) {
	t.Helper()
	if s.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %d %s", s.status, s.raw)
	}
}

// TestPrefer: how long the first request and repeats wait.
func TestPrefer(t *testing.T) {
	t.Parallel()
	withCallee(t, true, func(t *testing.T, r *apptest.Running, c *callee) {
		helloSite(t, r, chat("local", "gpt-x", paid))
		for i, prefer := range []string{"wait=0", "respond-async, wait=0", `WAIT="0"; x=1`, "wait=1"} {
			key := fmt.Sprint("k", i)
			first := execute(t, r, key, hello, "Prefer", prefer)
			if x := part(t, first.body, "execution"); first.status != 202 || first.replayed || x["status"] != "running" || x["output"] != nil || x["finished_at"] != nil {
				t.Errorf("%s: %d %s", prefer, first.status, first.raw)
			}
			wantRetryAfter(t, first)
			again := execute(t, r, key, hello, "Prefer", prefer)
			if x := part(t, again.body, "execution"); again.status != 200 || !again.replayed || x["status"] != "running" {
				t.Errorf("%s: %d %s", prefer, again.status, again.raw)
			}
			wantRetryAfter(t, again)
			c.next(t)
		}
		close(c.gate)
		for i := range 4 {
			s := execute(t, r, fmt.Sprint("k", i), hello)
			if x := part(t, s.body, "execution"); x["status"] != "succeeded" || s.header.Get("Retry-After") != "" {
				t.Errorf("%s", s.raw)
			}
		}
		for i, prefer := range []string{"wait=x", "wait=-1", "wait", "wait=99999999999999999999", "handling=lenient", ""} { // preferences that are none
			mustExecute(t, r, 200, fmt.Sprint("none", i), hello, "Prefer", prefer)
		}
		wantBalance(t, r, "80", "0")
	})
}

// TestAsync: the answer comes before the end, and so does that of a repeat.
func TestAsync(t *testing.T) {
	t.Parallel()
	withCallee(t, true, func(t *testing.T, r *apptest.Running, c *callee) {
		helloSite(t, r, chat("local", "gpt-x", paid))
		first := execute(t, r, "one", async)
		x := part(t, first.body, "execution")
		if first.status != 202 || x["status"] != "queued" || x["started_at"] != nil || first.replayed {
			t.Errorf("%d %s", first.status, first.raw)
		}
		wantRetryAfter(t, first)
		wantBalance(t, r, "100", "2")
		c.next(t)
		again := execute(t, r, "one", async)
		if y := part(t, again.body, "execution"); again.status != 200 || !again.replayed || y["id"] != x["id"] || y["status"] != "running" {
			t.Errorf("%d %s", again.status, again.raw)
		}
		wantRetryAfter(t, again)
		refusedExecution(t, execute(t, r, "one", hello), 409, "idempotency_conflict", "taken") // the mode is a part of it
		close(c.gate)
		eventually(t, func() bool { return executionOf(t, r, x["id"])["status"] == "succeeded" })
		if y := mustExecute(t, r, 200, "one", async); y["output"] != "hi" || y["charged"] != "2" {
			t.Errorf("%v", y)
		}
		wantBalance(t, r, "98", "0")
	})
}

// TestAsyncFailure: nobody is waiting, so a failure is what is read.
func TestAsyncFailure(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, chat("echo", "echo-fail", paid))
		x := mustExecute(t, r, 202, "one", async)
		eventually(t, func() bool { return executionOf(t, r, x["id"])["status"] == "failed" })
		if y := mustExecute(t, r, 200, "one", async); part(t, y, "error")["code"] != "model_error" || y["charged"] != "2" {
			t.Errorf("%v", y)
		}
		// Input that does not fit is known at once; the mode does not change what it is.
		failed(t, execute(t, r, "two", strings.Replace(async, `"hi"`, `1`, 1)), 422, "invalid_flow_input")
	})
}

// TestCancel: what is queued, what runs and what has ended.
func TestCancel(t *testing.T) {
	t.Parallel()
	onBothEnginesWith(t, []string{private, "--flows.concurrency=1"}, func(t *testing.T, r *apptest.Running) {
		c := newCallee(t, true)
		c.provides(t, r)
		helloSite(t, r, chat("local", "gpt-x", paid))
		cancel := func(id any) map[string]any {
			return part(t, asProject(r).must(t, 200, "POST", fmt.Sprint("/v1/executions/", id, "/cancel"), "").body, "execution")
		}
		running := mustExecute(t, r, 202, "running", hello, "Prefer", "wait=0")
		c.next(t)
		queued := mustExecute(t, r, 202, "queued", async)
		if x := executionOf(t, r, queued["id"]); x["status"] != "queued" {
			t.Errorf("%v", x)
		}
		wantBalance(t, r, "100", "4")
		for range 2 {
			if x := cancel(queued["id"]); x["status"] != "cancelled" || x["charged"] != "0" || x["started_at"] != nil {
				t.Errorf("%v", x)
			}
		}
		wantBalance(t, r, "100", "2")
		waiting := make(chan said, 1)
		go func() { waiting <- execute(t, r, "running", hello) }()
		cancel(running["id"])
		if s := <-waiting; s.status != 200 || part(t, s.body, "execution")["status"] != "cancelled" {
			t.Errorf("%d %s", s.status, s.raw)
		}
		for range 2 {
			x := cancel(running["id"])
			if x["status"] != "cancelled" || x["output"] != nil || x["error"] != nil || x["charged"] != "2" { // its step had begun
				t.Errorf("%v", x)
			}
		}
		close(c.gate)
		ended := mustExecute(t, r, 200, "ended", hello)
		if x := cancel(ended["id"]); fmt.Sprint(x) != fmt.Sprint(ended) {
			t.Errorf("%v\n%v", x, ended)
		}
		if x := mustExecute(t, r, 200, "queued", async); x["status"] != "cancelled" {
			t.Errorf("%v", x)
		}
		wantMovements(t, r, "ada", "topup 100", "capture -2", "capture -2")
		wantBalance(t, r, "96", "0")
		for _, id := range []string{nowhere, "x", "%00"} {
			asProject(r).refused(t, "not_found", "POST", "/v1/executions/"+id+"/cancel", "")
		}
		if n := len(c.calls()); n != 2 {
			t.Errorf("%d calls: one that was cancelled in the queue was run", n)
		}
	})
}

// TestWaitingTakesNoMemoryOfBodies: however many wait, intake goes on.
func TestWaitingTakesNoMemoryOfBodies(t *testing.T) {
	t.Parallel()
	r := apptest.New(t, private, "--intake.body_memory=8MiB").MustServe()
	c := newCallee(t, true)
	c.provides(t, r)
	helloSite(t, r, chat("local", "m", ""))
	body := strings.Replace(hello, `"input"`, `"context":{"pad":"`+strings.Repeat("x", 1_000_000)+`"},"input"`, 1)
	const many = 14 // as many bodies are more than the memory for them
	answers := make(chan said, many+1)
	for i := range many {
		go func() { answers <- execute(t, r, fmt.Sprint("k", i), body) }()
		c.next(t)
	}
	go func() { answers <- execute(t, r, "k0", body) }()
	r.TrackNew(1000)
	close(c.gate)
	for range cap(answers) {
		if s := <-answers; s.status != 200 || part(t, s.body, "execution")["status"] != "succeeded" {
			t.Errorf("%d %s", s.status, s.raw)
		}
	}
}

// TestEvents: what happens to an execution is told as it happens, and the
// stream ends with it.
func TestEvents(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, strings.Replace(chat("echo", "echo-slow", paid), `"provider"`, `"stream":true,"provider"`, 1))
		// A word takes a second; who is late misses the first ones.
		body := strings.Replace(async, `"hi"`, `"well now then one two"`, 1)
		x := mustExecute(t, r, 202, "one", body)
		s := asProject(r).must(t, 200, "GET", fmt.Sprint("/v1/executions/", x["id"], "/events"), "")
		if s.header.Get("Content-Type") != "text/event-stream" || s.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", s.header)
		}
		events := strings.Split(strings.TrimSuffix(s.raw, "\n\n"), "\n\n")
		last := events[len(events)-1]
		if !strings.HasPrefix(events[0], "event: execution\ndata: {") || !strings.HasPrefix(last, "event: execution\n") || !strings.Contains(last, `"status":"succeeded"`) {
			t.Errorf("%q", events)
		}
		for _, want := range []string{
			`event: delta` + "\n" + `data: {"iteration":"","step":"say","text":"one "}`, `"step":"say","text":"two"`, `event: step`, `"status":"finished"`,
		} {
			if !strings.Contains(s.raw, want) {
				t.Errorf("%q is missing: %s", want, s.raw)
			}
		}
		if again := asProject(r).must(t, 200, "GET", fmt.Sprint("/v1/executions/", x["id"], "/events"), ""); strings.Count(again.raw, "event:") != 1 {
			t.Errorf("%q", again.raw)
		}
		asProject(r).refused(t, "not_found", "GET", "/v1/executions/"+nowhere+"/events", "")
	})
}
