package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// helloSite publishes the flow hello and gives ada 100.
func helloSite(t *testing.T, r *apptest.Running, definition string) {
	t.Helper()
	asProject(r).publish(t, 201, "hello", definition)
	of("topup", "ada", "top", "100").must(t, r)
}

// TestFiftyFirstTimes: one runs it, and all get the same answer.
func TestFiftyFirstTimes(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, chat("echo", "echo-1", paid))
		replayed := 0
		ids := map[any]int{}
		for _, s := range sideBySide(50, func(int) said { return execute(t, r, "one", hello) }) {
			if s.status != 200 {
				t.Fatalf("%d %s", s.status, s.raw)
			}
			x := part(t, s.body, "execution")
			ids[x["id"]]++
			if s.replayed {
				replayed++
			}
			if x["status"] != "succeeded" || x["output"] != "hi" || x["charged"] != "2" {
				t.Errorf("%s", s.raw)
			}
		}
		if replayed != 49 || len(ids) != 1 {
			t.Errorf("%d replayed, %v", replayed, ids)
		}
		wantMovements(t, r, "ada", "topup 100", "capture -2")
		wantBalance(t, r, "98", "0")
	})
}

// TestLostAnswerOfAnExecution: the server commits and the connection is reset.
// Go's own client sends again by itself, and must see a success.
func TestLostAnswerOfAnExecution(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, chat("echo", "echo-1", paid))
		client, base, lost := losesFirstAnswer(t, r)
		request := requestOf(t, asProject(r), http.MethodPost, "/v1/operations/execute", hello)
		request.URL.Host = strings.TrimPrefix(base, "http://")
		request.Header.Set("Idempotency-Key", "one")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		s := read(t, response)
		if s.status != 200 || !s.replayed || lost.delivered.Load() != 2 || lost.reset.Load() != 1 || part(t, s.body, "execution")["output"] != "hi" {
			t.Errorf("%d %s after %d deliveries", s.status, s.raw, lost.delivered.Load())
		}
		wantMovements(t, r, "ada", "topup 100", "capture -2")
		if n := len(executions(t, r)); n != 1 {
			t.Errorf("%d executions", n)
		}
	})
}

// TestAKeyOfAnotherRoute: what names a movement names no execution, and the
// other way round; the conflict says what it names, and nothing runs.
func TestAKeyOfAnotherRoute(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, chat("echo", "echo-1", paid))
		of("topup", "bob", "bob", "100").must(t, r)
		x := mustExecute(t, r, 200, "run", hello)
		unit := func(s said, kind string, id any, status string) {
			t.Helper()
			refusedExecution(t, s, 409, "idempotency_conflict", "taken")
			named, _ := s.detail("unit").(map[string]any)
			if named["kind"] != kind || named["id"] != id || named["status"] != status ||
				s.part("message") != "The Idempotency-Key was already used with a different request body" {
				t.Errorf("%s, want %s %v %s", s.raw, kind, id, status)
			}
		}
		topup := of("topup", "ada", "top", "100").must(t, r).movementID(t)
		for _, body := range []string{hello, `{"flow":"hello","input":{}}`, `{`, ``, `[]`, `{"credit_type":"main","amount":"100"}`} {
			unit(execute(t, r, "top", body), "topup", topup, "succeeded")
		}
		for _, m := range []move{of("charge", "ada", "run", "2"), of("topup", "ada", "run", "2"), of("adjust", "bob", "run", "2"), {"charge", "ada", "run", hello}, {"charge", "nobody", "run", `{`}} {
			unit(m.send(t, r), "execution", x["id"], "succeeded")
		}
		for _, other := range []string{
			strings.Replace(hello, "ada", "bob", 1), strings.Replace(hello, "hi", "ho", 1), strings.Replace(hello, `"flow":"hello"`, `"flow":"none"`, 1),
			strings.Replace(hello, `{"flow"`, `{"execution_mode":"async","flow"`, 1), strings.Replace(hello, `{"flow"`, `{"version":1,"flow"`, 1),
		} {
			unit(execute(t, r, "run", other), "execution", x["id"], "succeeded")
		}
		wantMovements(t, r, "ada", "topup 100", "capture -2")
		wantMovements(t, r, "bob", "topup 100")
		if n := len(executions(t, r)); n != 1 {
			t.Errorf("%d executions", n)
		}
	})
}

// TestATakenKeyAndAMalformedBody: the bytes are compared before they are read.
func TestATakenKeyAndAMalformedBody(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, chat("echo", "echo-1", paid))
		x := mustExecute(t, r, 200, "run", hello)
		for name, same := range map[string]bool{
			hello + " ": true,
			`{ "flow" : "hello","customer":"ada","input":{"text":"hi"}}`:   true,
			`{"customer":"ada","flow":"hello","input":{"text":"hi"}}`:      true,
			`{"flow":"hello","customer":"ada","input":{"text":"\u0068i"}}`: true,
			``: false, `{`: false, `null`: false, `{}`: false, `{"flow":"hello","flow":"hello"}`: false, "\xff": false, hello + hello: false,
			strings.Repeat("[", 100): false, `{"unknown":1}`: false, `{"flow":"hello"}`: false, strings.Repeat(" ", 1<<20): false,
		} {
			s := refusedExecution(t, execute(t, r, "run", name), 409, "idempotency_conflict", "taken")
			unit, _ := s.detail("unit").(map[string]any)
			if (s.detail("same_json") == true) != same || unit["id"] != x["id"] || unit["status"] != "succeeded" || unit["kind"] != "execution" {
				t.Errorf("%.60q: %s", name, s.raw)
			}
		}
		if s := execute(t, r, "run", strings.Repeat(" ", 1<<20+1)); s.status != 413 {
			t.Errorf("%d %s", s.status, s.raw)
		}
		key := asProject(r).must(t, 200, "GET", "/v1/idempotency-keys?key=run", "")
		if u := part(t, key.body, "unit"); u["kind"] != "execution" || u["id"] != x["id"] || u["status"] != "succeeded" || key.body["response_expires_at"] != nil {
			t.Errorf("%s", key.raw)
		}
	})
}

// TestExecuteKeyEdges: what a key may be; what is refused for it has reserved
// nothing.
func TestExecuteKeyEdges(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, chat("echo", "echo-1", paid))
		long, wide := strings.Repeat("k", 190), strings.Repeat("é", 190)
		taken := 0
		for _, c := range []struct {
			keys   []string
			status int
			code   any
		}{
			{nil, 400, "idempotency_key_required"},
			{[]string{""}, 400, "idempotency_key_required"},
			{[]string{" \t "}, 400, "idempotency_key_required"},
			{[]string{long + "k"}, 422, "invalid_request"},
			{[]string{wide + "é"}, 422, "invalid_request"},
			{[]string{"k\xff"}, 422, "invalid_request"},
			{[]string{"a\u0085b"}, 422, "invalid_request"},
			{[]string{"two", "two"}, 422, "invalid_request"},
			{[]string{long}, 200, nil},
			{[]string{wide}, 200, nil},
			{[]string{`"quoted"`}, 200, nil},
			{[]string{"quoted"}, 200, nil},
			{[]string{"a, b"}, 200, nil},
			{[]string{"two"}, 200, nil},
		} {
			request := requestOf(t, asProject(r), http.MethodPost, "/v1/operations/execute", hello)
			request.Header["Idempotency-Key"] = c.keys
			s := sendRequest(t, request)
			if s.status != c.status || s.code() != c.code || s.replayed {
				t.Errorf("%q: %d %s", c.keys, s.status, s.raw)
			}
			if c.status == 200 {
				taken++
			}
		}
		if n := len(executions(t, r)); n != taken {
			t.Errorf("%d executions, want %d", n, taken)
		}
	})
}

// TestCodedBodies: what is compared is what the coding holds.
func TestCodedBodies(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		helloSite(t, r, chat("echo", "echo-1", paid))
		pack := func(level int) string {
			var b bytes.Buffer
			w, err := gzip.NewWriterLevel(&b, level)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(hello)); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		first := execute(t, r, "run", pack(gzip.BestCompression), "Content-Encoding", "gzip")
		if first.status != 200 || first.replayed {
			t.Fatalf("%d %s", first.status, first.raw)
		}
		for _, s := range []said{execute(t, r, "run", hello), execute(t, r, "run", pack(gzip.NoCompression), "Content-Encoding", "gzip")} {
			if s.status != 200 || !s.replayed || fmt.Sprint(s.body) != fmt.Sprint(first.body) {
				t.Errorf("%d %s", s.status, s.raw)
			}
		}
		refusedExecution(t, execute(t, r, "run", pack(1)), 409, "idempotency_conflict", "taken")
		wantMovements(t, r, "ada", "topup 100", "capture -2")
	})
}

// TestStockClientsDoNotRepeatAnExecution: neither a conflict nor a failure is
// sent again by a client that looks at X-Should-Retry.
func TestStockClientsDoNotRepeatAnExecution(t *testing.T) {
	t.Parallel()
	r := apptest.New(t).MustServe()
	helloSite(t, r, chat("echo", "echo-1", paid))
	asProject(r).publish(t, 201, "fails", chat("echo", "echo-fail", ""))
	mustExecute(t, r, 200, "run", hello)
	for key, body := range map[string]string{"run": `{"flow":"hello","input":{}}`, "new": `{"flow":"fails","input":{"text":"x"}}`} {
		sent := 0
		for s := (said{}); sent == 0 || sent < 3 && s.header.Get("X-Should-Retry") == "true"; sent++ {
			s = execute(t, r, key, body)
			if s.status < 400 {
				t.Errorf("%d %s", s.status, s.raw)
			}
		}
		if sent != 1 {
			t.Errorf("%s: %d requests", key, sent)
		}
	}
}
