package e2e_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// movementID is the id of the movement in an answer.
func (s said) movementID(t *testing.T) string {
	t.Helper()
	return said{body: part(t, s.body, "movement")}.text(t, "id")
}

func TestReversal(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		top := of("topup", "ada", "t", "100").must(t, r).movementID(t)
		charged := of("charge", "ada", "c", "30").must(t, r).movementID(t)
		undo := func(movement string) string { return "/v1/movements/" + movement + "/reversal" }

		s := c.refused(t, "invalid_request", "POST", undo(charged), `{"amount":"30.000001"}`)
		if s.detail("field") != "amount" {
			t.Errorf("%s", s.raw)
		}
		first := c.must(t, 201, "POST", undo(charged), `{"amount":"10","reason":"too much"}`)
		m := part(t, first.body, "movement")
		if m["kind"] != "reversal" || m["delta"] != "10" || m["reversal_of"] != charged || part(t, first.body, "balance")["posted"] != "80" {
			t.Errorf("%s", first.raw)
		}
		if s := c.must(t, 200, "POST", undo(charged), `{"reason":"too much","amount":10.0}`); s.movementID(t) != first.movementID(t) {
			t.Errorf("%s", s.raw)
		}
		for _, other := range []string{`{}`, ``, `{"amount":"10"}`, `{"amount":"20","reason":"too much"}`} {
			if s := c.refused(t, "conflict", "POST", undo(charged), other); s.detail("reversal") != first.movementID(t) {
				t.Errorf("%s: %s", other, s.raw)
			}
		}
		c.refused(t, "conflict", "POST", undo(first.movementID(t)), "")
		if s := c.refused(t, "insufficient_credits", "POST", undo(top), ""); s.detail("balance") == nil {
			t.Errorf("%s", s.raw)
		}
		c.must(t, 201, "POST", undo(top), `{"amount":"80"}`)
		c.refused(t, "not_found", "POST", undo("01980000-0000-7000-8000-000000000000"), "")
		c.refused(t, "not_found", "POST", undo("x"), "")
		wantMovements(t, r, "ada", "topup 100", "charge -30", "reversal 10", "reversal -80")
		got := c.must(t, 200, "GET", "/v1/movements/"+charged, "")
		if part(t, got.body, "reversal")["id"] != first.movementID(t) {
			t.Errorf("%s", got.raw)
		}
		key := c.must(t, 200, "GET", "/v1/idempotency-keys?key=c", "")
		if part(t, key.body, "unit")["status"] != "reversed" {
			t.Errorf("%s", key.raw)
		}
		if s := of("charge", "ada", "c", "30").must(t, r); !s.replayed || s.movementID(t) != charged {
			t.Errorf("a reversed movement is done again: %s", s.raw)
		}
	})
}

// TestReversalsAtOnce: one of many equal ones is made.
func TestReversalsAtOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		of("topup", "ada", "t", "100").must(t, r)
		charged := of("charge", "ada", "c", "30").must(t, r).movementID(t)
		made := 0
		for _, s := range sideBySide(20, func(int) said {
			return asProject(r).call(t, "POST", "/v1/movements/"+charged+"/reversal", "")
		}) {
			if s.status == http.StatusCreated {
				made++
			} else if s.status != http.StatusOK {
				t.Errorf("%d %s", s.status, s.raw)
			}
		}
		if made != 1 {
			t.Errorf("%d reversals", made)
		}
		wantMovements(t, r, "ada", "topup 100", "charge -30", "reversal 30")
	})
}

// TestReversalOfAGrant: what a topup gave is taken from its own grant, however
// late it would be used.
func TestReversalOfAGrant(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		of("topup", "ada", "base", "100").must(t, r)
		grant := move{"topup", "ada", "grant", `{"credit_type":"main","amount":"50","priority":90,"expires_at":"2099-01-01T00:00:00Z"}`}
		id := grant.must(t, r).movementID(t)
		left := func() []map[string]any {
			return asProject(r).must(t, 200, "GET", "/v1/customers/ada/grants", "").items(t)
		}
		if g := left(); len(g) != 1 || g[0]["remaining"] != "50" || g[0]["priority"] != 90.0 || g[0]["movement"] != id {
			t.Fatalf("%v", g)
		}
		asProject(r).must(t, 201, "POST", "/v1/movements/"+id+"/reversal", "")
		if g := left(); len(g) != 0 {
			t.Errorf("%v", g)
		}
		wantBalance(t, r, "100", "0")
	})
}

// TestGrantsExpire: what is left of a grant goes by itself, and is an entry.
func TestGrantsExpire(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		var customer string
		var at time.Time
		inTime(func(end time.Time) bool { // each time of a customer who has nothing yet
			customer += "a"
			of("topup", customer, "base-"+customer, "10").must(t, r)
			grant := fmt.Sprintf(`{"credit_type":"main","amount":"5","expires_at":%q}`, end.Format(time.RFC3339Nano))
			if s := (move{"topup", customer, "grant-" + customer, grant}).send(t, r); s.status != http.StatusOK {
				return false
			}
			of("charge", customer, "charge-"+customer, "2").must(t, r)
			at = time.Now().UTC()
			return at.Before(end)
		})
		eventually(t, func() bool { return available(t, r, customer) == "10" })
		wantMovements(t, r, customer, "topup 10", "topup 5", "charge -2", "expiry -3")
		balance := "/v1/customers/" + customer + "/balance?at="
		then := c.must(t, 200, "GET", balance+at.Format(time.RFC3339Nano), "")
		if b := part(t, then.body, "balances", "main"); b["posted"] != "13" {
			t.Errorf("%s", then.raw)
		}
		first := c.must(t, 200, "GET", balance+"2020-01-01T00:00:00Z", "")
		if b := part(t, first.body, "balances", "main"); b["posted"] != "0" {
			t.Errorf("%s", first.raw)
		}
		expired := c.must(t, 200, "GET", "/v1/movements?kind=expiry&customer="+customer, "").items(t)
		if len(expired) != 1 {
			t.Fatalf("%v", expired)
		}
		c.refused(t, "conflict", "POST", fmt.Sprint("/v1/movements/", expired[0]["id"], "/reversal"), "")
	})
}

// TestMovementsInPages: a list does not move while movements are added, and an
// export has all of them in order.
func TestMovementsInPages(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		const n = 25
		for i := range n {
			of("topup", fmt.Sprint("c", i%2), fmt.Sprint("k", i), fmt.Sprint(i+1)).must(t, r)
		}
		seen := map[any]bool{}
		pages, path := 0, "/v1/movements?limit=10"
		for path != "" {
			s := c.must(t, 200, "GET", path, "")
			for _, item := range s.items(t) {
				if seen[item["idempotency_key"]] {
					t.Errorf("twice: %v", item)
				}
				seen[item["idempotency_key"]] = true
			}
			path = ""
			if next, ok := s.body["next_cursor"].(string); ok {
				path = "/v1/movements?limit=10&cursor=" + next
			}
			pages++
			of("topup", "c0", fmt.Sprint("later", pages), "1").must(t, r)
		}
		if pages != 3 || len(seen) != n || seen["later1"] {
			t.Errorf("%d movements on %d pages", len(seen), pages)
		}
		for filter, want := range map[string]int{
			"customer=c1": 12, "customer=nobody": 0, "kind=charge": 0, "credit_type=main": n + 3, "credit_type=other": 0,
			"to=2020-01-01T00:00:00Z": 0, "from=2020-01-01T00:00:00Z&customer=c1&kind=topup": 12,
		} {
			if got := c.must(t, 200, "GET", "/v1/movements?limit=200&"+filter, "").items(t); len(got) != want {
				t.Errorf("%s: %d, want %d", filter, len(got), want)
			}
		}
		c.refused(t, "validation_failed", "GET", "/v1/movements?kind=gift", "")
		c.refused(t, "validation_failed", "GET", "/v1/movements/export?format=xml", "")
	})
}

func TestExport(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		awkward := `a "b",` + "\u2028é/%"
		move{"topup", awkward, "k,1", `{"credit_type":"main","amount":"5","reason":"x, \"y\"","metadata":{"big":12345678901234567890}}`}.must(t, r)
		of("charge", awkward, "k2", "1.5").must(t, r)
		kind, text := export(t, r, "GET", "")
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) != 3 || kind != "text/csv; charset=utf-8" {
			t.Fatalf("%s %q: %v", kind, text, err)
		}
		if first := rows[1]; first[2] != awkward || first[4] != "5" || first[8] != `x, "y"` || first[9] != "k,1" || first[14] != `{"big":12345678901234567890}` {
			t.Errorf("%q", first)
		}
		if second := rows[2]; second[5] != "-1.5" || second[6] != "3.5" {
			t.Errorf("%q", second)
		}
		kind, text = export(t, r, "GET", "?format=jsonl&kind=charge")
		var one map[string]any
		if err := json.Unmarshal([]byte(text), &one); err != nil || one["delta"] != "-1.5" || kind != "application/jsonl" || !strings.HasSuffix(text, "}\n") {
			t.Errorf("%s %q: %v", kind, text, err)
		}
		if _, text := export(t, r, "GET", "?kind=capture"); strings.Count(text, "\n") != 1 {
			t.Errorf("%q", text)
		}
		if _, text := export(t, r, "GET", "?kind=capture&format=jsonl"); text != "" {
			t.Errorf("%q", text)
		}
		if kind, text := export(t, r, "HEAD", "?format=jsonl"); kind != "application/jsonl" || text != "" {
			t.Errorf("%s %q", kind, text)
		}
	})
}

// export returns the type and the text of an export.
func export(t *testing.T, r *apptest.Running, method, query string) (kind, text string) {
	t.Helper()
	response := do(t, method, r.URL+"/v1/movements/export"+query, r.Setup.ProjectKey, nil)
	content, err := io.ReadAll(response.Body)
	if err != nil || response.Body.Close() != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", response.StatusCode, err)
	}
	return response.Header.Get("Content-Type"), string(content)
}
