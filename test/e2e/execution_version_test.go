package e2e_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// greet is a run of the flow greet.
const greet = `{"flow":"greet","input":{}}`

// TestWhichVersionRuns: that of the request, else the pinned one, else the
// latest; none of an archived flow.
func TestWhichVersionRuns(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		for _, text := range []string{"one", "two", "three"} {
			c.publish(t, 201, "greet", flowText(text))
		}
		wants := func(key, body string, version float64, output string) {
			t.Helper()
			if x := mustExecute(t, r, 200, key, body); x["version"] != version || x["output"] != output {
				t.Errorf("%s: %v", key, x)
			}
		}
		wants("latest", greet, 3, "three")
		wants("second", `{"flow":"greet","version":2,"input":{}}`, 2, "two")
		c.must(t, 200, "PUT", "/v1/flows/greet/pin", `{"version":1}`)
		wants("pinned", greet, 1, "one")
		wants("third", `{"flow":"greet","version":3,"input":{}}`, 3, "three")
		c.publish(t, 201, "greet", flowText("four"))
		wants("still pinned", greet, 1, "one")
		c.must(t, 200, "DELETE", "/v1/flows/greet/pin", "")
		wants("fourth", greet, 4, "four")
		c.must(t, 200, "POST", "/v1/flows/greet/archive", "")
		refusedExecution(t, execute(t, r, "archived", greet), 404, "flow_not_found", "free")
		refusedExecution(t, execute(t, r, "archived", `{"flow":"greet","version":1,"input":{}}`), 404, "flow_not_found", "free")
		wants("latest", greet, 3, "three") // what was done stays done
		c.must(t, 200, "POST", "/v1/flows/greet/unarchive", "")
		wants("archived", greet, 4, "four")
	})
}

// TestAVersionIsPublishedMeanwhile: a run goes on with the version that it was
// made with, also when the flow is archived.
func TestAVersionIsPublishedMeanwhile(t *testing.T) {
	t.Parallel()
	withCallee(t, true, func(t *testing.T, r *apptest.Running, c *callee) {
		then := func(text string) string {
			return strings.Replace(chat("local", "gpt-x", ""), `"output":"${steps.say.text}"`, `"output":"`+text+`"`, 1)
		}
		p := asProject(r)
		p.publish(t, 201, "hello", then("first"))
		p.must(t, 201, "PUT", "/v1/customers/ada", "")
		x := mustExecute(t, r, 202, "one", hello, "Prefer", "wait=0")
		c.next(t)
		p.publish(t, 201, "hello", then("second"))
		p.must(t, 200, "POST", "/v1/flows/hello/archive", "")
		close(c.gate)
		if y := mustExecute(t, r, 200, "one", hello); y["id"] != x["id"] || y["version"] != 1.0 || y["output"] != "first" {
			t.Errorf("%v", y)
		}
	})
}

// twoSteps asks a model twice.
const twoSteps = `{"steps":[{"id":"a","type":"model","provider":"local","model":"m","messages":[{"role":"user","content":"${input.text}"}]},` +
	`{"id":"b","type":"model","provider":"local","model":"m","messages":[{"role":"user","content":"${steps.a.text + \"!\"}"}]}],` +
	`"output":"${steps.b.text}","price":{"per_run":"2"}}`

// TestAServerStops: it lets the call under way end, begins no other, says so to
// who waits, and the next start goes on where it was.
func TestAServerStops(t *testing.T) {
	t.Parallel()
	withCallee(t, true, func(t *testing.T, r *apptest.Running, c *callee) {
		helloSite(t, r, twoSteps)
		answers := make(chan said, 1)
		go func() { answers <- execute(t, r, "one", hello) }()
		first := c.next(t)
		stopped := make(chan error, 1)
		go func() { stopped <- r.Stop() }()
		eventually(t, func() bool { // it takes no new connections any more
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.URL, "http://"))
			return err != nil || conn.Close() != nil
		})
		c.gate <- struct{}{}
		s := <-answers
		x := part(t, s.body, "execution")
		if s.status != 202 || x["status"] != "queued" {
			t.Errorf("%d %s", s.status, s.raw)
		}
		wantRetryAfter(t, s)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		close(c.gate)
		r = r.MustServe()
		y := mustExecute(t, r, 200, "one", hello)
		if y["id"] != x["id"] || y["status"] != "succeeded" || y["output"] != "hi!" || y["charged"] != "2" {
			t.Errorf("%v", y)
		}
		if calls := c.calls(); len(calls) != 2 || calls[0] != first || first != fmt.Sprint(x["id"], ":a") || calls[1] != fmt.Sprint(x["id"], ":b") {
			t.Errorf("%v", calls)
		}
		wantMovements(t, r, "ada", "topup 100", "capture -2")
		wantBalance(t, r, "98", "0")
	})
}

// TestAServerStopsTooSoon: a call that is cut is one whose outcome nobody knows;
// it is made again only if the step says so, and then with the same key.
func TestAServerStopsTooSoon(t *testing.T) {
	t.Parallel()
	onBothEnginesWith(t, []string{private, "--shutdown_timeout=1s"}, func(t *testing.T, r *apptest.Running) {
		c := newCallee(t, true)
		c.provides(t, r)
		helloSite(t, r, chat("local", "m", paid))
		asProject(r).publish(t, 201, "again", strings.Replace(chat("local", "m", paid), `"provider"`, `"on_interrupt":"retry","provider"`, 1))
		mustExecute(t, r, 202, "one", hello, "Prefer", "wait=0")
		again := strings.Replace(hello, "hello", "again", 1)
		y := mustExecute(t, r, 202, "two", again, "Prefer", "wait=0")
		c.next(t)
		c.next(t)
		r.MustStop()
		close(c.gate)
		r = r.MustServe()
		x := mustExecute(t, r, 200, "one", hello)
		if x["status"] != "failed" || part(t, x, "error")["code"] != "outcome_unknown" {
			t.Errorf("%v", x)
		}
		if z := mustExecute(t, r, 200, "two", again); z["status"] != "succeeded" || z["id"] != y["id"] {
			t.Errorf("%v", z)
		}
		count := map[string]int{}
		for _, key := range c.calls() {
			count[key]++
		}
		if len(count) != 2 || count[fmt.Sprint(x["id"], ":say")] != 1 || count[fmt.Sprint(y["id"], ":say")] != 2 {
			t.Errorf("%v", count)
		}
		wantMovements(t, r, "ada", "topup 100", "capture -2", "capture -2")
		wantBalance(t, r, "96", "0")
	})
}

// TestTwoServers: what one runs, another tells of: a repeat waits there for the
// end, and one that is queued is run by either.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	site := apptest.NewOnPostgreSQL(t, private)
	second := beside(t, site)
	r, other := site.MustServe(), second.MustServe()
	c := newCallee(t, true)
	c.provides(t, r)
	helloSite(t, r, chat("local", "m", paid))
	answers := make(chan said, 2)
	go func() { answers <- execute(t, r, "one", hello) }()
	c.next(t)
	if x := mustExecute(t, other, 200, "one", hello, "Prefer", "wait=0"); x["status"] != "running" {
		t.Errorf("%v", x)
	}
	refusedExecution(t, execute(t, other, "one", async), 409, "idempotency_conflict", "taken")
	go func() { answers <- execute(t, other, "one", hello) }()
	c.gate <- struct{}{}
	for range 2 {
		s := <-answers
		if x := part(t, s.body, "execution"); s.status != 200 || x["status"] != "succeeded" || x["output"] != "hi" {
			t.Errorf("%d %s", s.status, s.raw)
		}
	}
	y := mustExecute(t, r, 202, "two", hello, "Prefer", "wait=0")
	c.next(t)
	asProject(other).must(t, 200, "POST", fmt.Sprint("/v1/executions/", y["id"], "/cancel"), "")
	if z := mustExecute(t, other, 200, "two", hello); z["status"] != "cancelled" {
		t.Errorf("%v", z)
	}
	if n := len(c.calls()); n != 2 {
		t.Errorf("%d calls", n)
	}
	wantMovements(t, r, "ada", "topup 100", "capture -2", "capture -2")
	wantBalance(t, other, "96", "0")
}
