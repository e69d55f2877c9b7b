package e2e_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

func TestCustomers(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		c.refused(t, "customer_not_found", "GET", "/v1/customers/ada", "")
		c.refused(t, "customer_not_found", "PATCH", "/v1/customers/ada", `{"metadata":{}}`)
		made := c.must(t, 201, "PUT", "/v1/customers/ada", `{"metadata":{"plan":"pro","n":1.10}}`)
		if part(t, made.body, "metadata")["plan"] != "pro" || len(part(t, made.body, "balances")) != 0 {
			t.Errorf("%s", made.raw)
		}
		if s := c.must(t, 200, "PUT", "/v1/customers/ada", ""); part(t, s.body, "metadata")["plan"] != "pro" {
			t.Errorf("%s", s.raw)
		}
		if s := c.must(t, 200, "PATCH", "/v1/customers/ada", `{"metadata":{"x":null}}`); !strings.Contains(s.raw, `"metadata":{"x":null}`) {
			t.Errorf("%s", s.raw)
		}
		c.refused(t, "invalid_request", "PATCH", "/v1/customers/ada", `{}`)
		c.refused(t, "invalid_request", "PATCH", "/v1/customers/ada", `{"metadata":{"a":"`+strings.Repeat("x", 17<<10)+`"}}`)
		c.refused(t, "invalid_json", "PATCH", "/v1/customers/ada", `{`)
		of("adjust", "ada", "a", "5").must(t, r) // it is there, so it can be adjusted
		c.must(t, 201, "PUT", "/v1/customers/bob", "")
		list := c.must(t, 200, "GET", "/v1/customers?limit=1", "")
		if items := list.items(t); len(items) != 1 || items[0]["customer"] != "bob" {
			t.Errorf("%s", list.raw)
		}
		next := c.must(t, 200, "GET", "/v1/customers?limit=1&cursor="+list.text(t, "next_cursor"), "")
		if items := next.items(t); len(items) != 1 || items[0]["customer"] != "ada" || next.body["next_cursor"] != nil {
			t.Errorf("%s", next.raw)
		}
	})
}

// TestCustomersByAnyName: an id is compared character by character, on every
// engine, and may hold what a path may not.
func TestCustomersByAnyName(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		names := []string{
			"a", "A", "a ", " a", "a/b", "a%2Fb", "é", "e\u0301", "ß", "ss", "%", "'; --", "...", "\u65e5\u672c", strings.Repeat("é", 200), "a+b", "a b", "\U0001F600",
		}
		for i, name := range names {
			of("topup", name, url.QueryEscape(string(rune('A'+i))), "1").must(t, r)
		}
		for _, name := range names {
			if got := available(t, r, name); got != "1" {
				t.Errorf("%q has %s", name, got)
			}
		}
		if n := len(asProject(r).must(t, 200, "GET", "/v1/customers?limit=200", "").items(t)); n != len(names) {
			t.Errorf("%d customers, want %d", n, len(names))
		}
		for _, path := range []string{"%2e", "%2e%2e", "%00", "a%0ab", "%ff", strings.Repeat("x", 201), "%7f"} {
			body := `{"credit_type":"main","amount":"1"}`
			request := move{"topup", "x", "refused", body}.request(t, r, r.URL)
			request.URL.Path, request.URL.RawPath = "", ""
			request.URL.Opaque = "//" + request.URL.Host + "/v1/customers/" + path + "/topup"
			if s := readOf(t, request); s.code() != "invalid_request" || s.status != 422 || s.detail("key") != "free" {
				t.Errorf("%s: %d %s", path, s.status, s.raw)
			}
			asProject(r).refused(t, "customer_not_found", "GET", "/v1/customers/"+path, "")
		}
		asProject(r).refused(t, "not_found", "GET", "/v1/customers/..", "")
		asProject(r).refused(t, "not_found", "GET", "/v1/idempotency-keys?key=refused", "")
	})
}

// TestCustomerCalledSlash: a name may be nothing but what separates the names
// in a path.
func TestCustomerCalledSlash(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		const customer, hold = "/v1/customers/%2F", "/v1/customers/%2F/holds/%2f"
		c.refused(t, "customer_not_found", "GET", customer, "")
		if made := c.must(t, 201, "PUT", customer, ""); made.body["customer"] != "/" {
			t.Errorf("%s", made.raw)
		}
		of("topup", "/", "t", "5").must(t, r)
		placed := c.must(t, 201, "PUT", hold, `{"credit_type":"main","amount":"3"}`)
		if h := part(t, placed.body, "hold"); h["id"] != "/" || h["customer"] != "/" {
			t.Errorf("%s", placed.raw)
		}
		if got := available(t, r, "/"); got != "2" {
			t.Errorf("%s is available", got)
		}
		c.must(t, 200, "POST", hold+"/capture", "")
		wantMovements(t, r, "/", "topup 5", "capture -3")
		for _, other := range []string{"%2F%2F", "%252F"} {
			c.refused(t, "customer_not_found", "GET", "/v1/customers/"+other, "")
			c.refused(t, "not_found", "GET", "/v1/customers/%2F/holds/"+other, "")
		}
	})
}

// TestAmounts: nothing is rounded, in whatever form it comes.
func TestAmounts(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		send := func(key, amount string) said {
			return move{"topup", key, key, `{"credit_type":"main","amount":` + amount + `}`}.send(t, r)
		}
		for amount, want := range map[string]string{
			`0.1`: "0.1", `"10.50"`: "10.5", `10.50`: "10.5", `999999999999.999999`: "999999999999.999999", `"0.000001"`: "0.000001", `1.000000`: "1",
		} {
			s := send("ok"+amount, amount)
			if s.status != 200 || part(t, s.body, "movement")["amount"] != want || part(t, s.body, "balance")["posted"] != want {
				t.Errorf("%s: %d %s", amount, s.status, s.raw)
			}
		}
		for _, amount := range []string{
			`0`, `-1`, `"-1"`, `0.0000001`, `1.0000000`, `1000000000000`, `1e3`, `"1e3"`, `1E-1`, `""`, `" 1"`, `"+1"`, `"01"`, `".5"`, `"5."`, `"NaN"`,
			`"１"`, `null`, `true`, `[]`, `{}`, `1e999`, `"0x10"`, `"1,5"`, `"1_000"`,
		} {
			if s := send("bad", amount); s.status != 422 || s.code() != "invalid_request" || s.detail("field") != "amount" || s.detail("key") != "free" {
				t.Errorf("%s: %d %s", amount, s.status, s.raw)
			}
		}
		for _, body := range []string{
			`{"amount":"1"}`, `{"credit_type":"main"}`, `{"credit_type":"","amount":"1"}`, `{"credit_type":"main","amount":"1","note":"x"}`, `[]`,
			`{"credit_type":"main","amount":"1","priority":101}`, `{"credit_type":"main","amount":"1","expires_at":"tomorrow"}`,
			`{"credit_type":"main","amount":"1","expires_at":"2020-01-01T00:00:00Z"}`, `{"credit_type":"main","amount":"1","metadata":[]}`,
		} {
			move{"topup", "ada", "bad", body}.refused(t, r, 422, "invalid_request", "free")
		}
		for _, body := range []string{``, `{`, `{"a":1,"a":1}`} {
			move{"topup", "ada", "bad", body}.refused(t, r, 400, "invalid_json", "free")
		}
		of("topup", "full", "full", "999999999999.999999").must(t, r)
		of("topup", "full", "more", "0.000001").refused(t, r, 422, "invalid_request", "free")
		asProject(r).refused(t, "not_found", "GET", "/v1/idempotency-keys?key=bad", "")
		asProject(r).refused(t, "customer_not_found", "GET", "/v1/customers/ada", "")
	})
}

func TestCreditTypes(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		c := asProject(r)
		c.must(t, 201, "PUT", "/v1/credit-types/debt", `{"allow_negative":true}`)
		c.must(t, 200, "PUT", "/v1/credit-types/debt", `{"allow_negative":true}`)
		if s := c.refused(t, "conflict", "PUT", "/v1/credit-types/debt", ""); s.detail("allow_negative") != true {
			t.Errorf("%s", s.raw)
		}
		of("topup", "ada", "t", "1").must(t, r) // makes main
		c.must(t, 200, "PUT", "/v1/credit-types/main", "")
		c.refused(t, "invalid_request", "PUT", "/v1/credit-types/"+strings.Repeat("x", 65), "")
		move{"charge", "ada", "c", `{"credit_type":"debt","amount":"7"}`}.must(t, r)
		list := c.must(t, 200, "GET", "/v1/credit-types", "").items(t)
		if len(list) != 2 || list[0]["name"] != "debt" || list[1]["allow_negative"] != false {
			t.Errorf("%v", list)
		}
		s := c.must(t, 200, "GET", "/v1/customers/ada", "")
		if b := part(t, s.body, "balances", "debt"); b["available"] != "-7" {
			t.Errorf("%s", s.raw)
		}
	})
}

// TestWhoMayMoveCredits: only a project key, and only in its own project.
func TestWhoMayMoveCredits(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, r *apptest.Running) {
		id := of("topup", "ada", "t", "1").must(t, r).movementID(t)
		for _, secret := range []string{r.Setup.ServerKey, r.Setup.BrowserToken, r.Setup.LegacyKey, r.Setup.CIToken, r.Setup.AccessToken} {
			caller{r, secret}.refused(t, "forbidden", "GET", "/v1/customers/ada", "")
			caller{r, secret}.refused(t, "forbidden", "POST", "/v1/customers/ada/topup", `{"credit_type":"main","amount":"1"}`)
		}
		owner := caller{r, r.Setup.AccessToken}
		path := "/api/v1/projects/" + owner.must(t, 201, "POST", "/api/v1/projects", `{"name":"Other"}`).text(t, "id")
		other := caller{r, owner.must(t, 201, "POST", path+"/project-keys", `{"name":"k"}`).text(t, "token")}
		other.refused(t, "customer_not_found", "GET", "/v1/customers/ada", "")
		other.refused(t, "not_found", "GET", "/v1/movements/"+id, "")
		other.refused(t, "not_found", "POST", "/v1/movements/"+id+"/reversal", "")
		other.refused(t, "not_found", "GET", "/v1/idempotency-keys?key=t", "")
		if n := len(other.must(t, 200, "GET", "/v1/movements?customer=ada", "").items(t)); n != 0 {
			t.Errorf("%d movements of another project", n)
		}
		request := of("topup", "ada", "t", "2").request(t, r, r.URL) // the same key, in another project
		request.Header.Set("Authorization", "Bearer "+other.secret)
		if s := readOf(t, request); s.status != 200 || s.replayed {
			t.Errorf("%d %s", s.status, s.raw)
		}
		wantMovements(t, r, "ada", "topup 1")
	})
}
